"""Benchmarks behind the claims about speed: `python -m benchmarks`.

Each figure is a ratio to an alternative that a user could pick. Both are measured side by side in one run, because the
machines are noisy. Nothing here is a test. The figures of the last run go to `benchmarks/results`.
"""
