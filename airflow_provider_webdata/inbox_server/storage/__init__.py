"""Deliveries in Airflow's metadata database: stored once, put in an order, read, waited for, replayed and pruned.

Knows nothing of HTTP. `inbox` is the whole of it for a server process, `store` the plain transactions.
"""
