"""Mutation tests: small changes to the package, each of which some test should notice.

`python -m tools.mutants` draws a sample of the mutants of each part in `parts.py`, runs the tests that reach the
mutated function, and lists the survivors. mutmut creates the mutants. A mutated file holds all of its mutants, and the
environment names the active one, so that a forked child has nothing to import. Everything happens in a copy of the
clone. Its Python environment prefers the copy, also in programs that tests start.
"""
