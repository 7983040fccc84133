"""Webhook deliveries: `server` receives, stores and serves them; the modules beside it are what a reader needs.

What both sides must agree on (paths, tokens, how an envelope is read) stands here and imports no Airflow. What a
delivery means for a task belongs in `triggers`; how the service is told to send it belongs in `hooks.webhooks`.
"""
