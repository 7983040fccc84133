# SPDX-License-Identifier: Apache-2.0
"""Webhook deliveries: `inbox_server` receives, stores, and serves them; `reader` is the client of Airflow's processes.

The shared protocol (paths, tokens, probes, envelopes) is in this package and imports no Airflow. `triggers` interprets
deliveries for tasks, and `hooks.webhooks` configures the service to send them.
"""
