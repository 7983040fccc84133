"""The service and nothing else: wire models, declared endpoints, the client that executes them, the errors.

No Airflow in this room, so that it can be used, tested and reasoned about on its own. What turns an Airflow
connection into a client lives in `hooks`.
"""
