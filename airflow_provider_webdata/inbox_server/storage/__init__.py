# SPDX-License-Identifier: Apache-2.0
"""Storage of deliveries in Airflow's metadata database: deduplication, ordering, reads, waits, replays, and pruning.

Independent of HTTP. `inbox` combines everything for a server process; `store` contains the plain transactions.
"""
