# SPDX-License-Identifier: Apache-2.0
"""Benchmarks behind the performance claims: `python -m benchmarks`.

Each figure is a ratio to an alternative that a user could choose. Both are measured in the same run, because machines
are noisy. Benchmarks are not tests. They write the figures of the last run to `benchmarks/results`.
"""
