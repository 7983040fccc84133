# SPDX-License-Identifier: Apache-2.0
"""Mutation tests: small changes to the package, each of which at least one test should detect.

`python -m tools.mutants` draws a sample of the mutants of each part in `parts.py`, runs the tests that reach the
mutated function, and lists the survivors. mutmut creates the mutants. A mutated file contains all of its mutants, and
an environment variable selects the active one, so a forked child needs no imports. All files are changed in a copy of
the clone. The copy's Python environment imports the package from the copy, also in programs that tests start.
"""
