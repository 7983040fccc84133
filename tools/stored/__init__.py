"""What a version of the package leaves in an installation, made by the code that stores it; see docs/stored.md.

One file for each kind of place that it is left in; `python -m tools.stored` writes `tests/stored`.
"""
