"""A sandbox and a real Airflow beside it, started, followed and ended from Python.

`python -m demo` is behind `make demo`, `make up` and `make down`; the end-to-end tests use `tests.support.stack`
directly. Nothing here is part of the installed package.
"""
