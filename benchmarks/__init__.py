"""What is claimed about speed, runnable: `python -m benchmarks`.

Each figure is a ratio against something a user would pick instead, taken side by side in one run, because the
machines it runs on are noisy. Nothing here is a test; the figures of the last run go to `benchmarks/results`.
"""
