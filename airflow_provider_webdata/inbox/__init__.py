"""Webhook deliveries: `server` receives, stores and serves them, `reader` is what Airflow's processes read them with.

What both sides must agree on (paths, tokens, probes, how an envelope is read) stands beside them and imports no
Airflow. What a delivery means for a task belongs in `triggers`; how the service is asked to send it belongs in
`hooks.webhooks`.
"""
