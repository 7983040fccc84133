# SPDX-License-Identifier: Apache-2.0
"""The hooks' asynchronous methods, by resource.

The asynchronous hook inherits them. The blocking hook wraps them; see `hooks.blocking`.
"""
