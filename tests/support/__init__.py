"""What the tests of several rooms share, and the demo and the benchmarks with them.

Servers that stand in for the service, an Airflow to start and to follow, databases, and the ways to wait. Nothing
here is part of the installed package, and nothing here needs pytest.
"""
