"""The hooks' methods, by resource: the calls, and the asynchronous methods that make them.

The asynchronous hook inherits the methods. The blocking hook has them in blocking form; see `hooks.blocking`.
"""
