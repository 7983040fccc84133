"""The inbox's HTTP side: receives deliveries and serves them to readers. Each request is bounded and authenticated.

Plain ASGI on top of `storage`, with no SQL. Connections and options come from `application`, one package up.
"""
