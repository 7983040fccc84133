"""For the tests of users' own DAGs: a sandbox, an inbox and the connections that lead to both, as fixtures of pytest.

Nothing is imported here: pytest imports the plugin wherever this package is installed.
"""
