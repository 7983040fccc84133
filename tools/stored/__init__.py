"""The data that a version of the package stores in an installation; see docs/contributing/stored.md.

The package's own code creates it. There is one module for each kind of place; `python -m tools.stored` writes
`tests/stored`.
"""
