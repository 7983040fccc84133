"""The inbox's HTTP side: deliveries come in and are read by readers, each request bounded and authenticated.

Plain ASGI on top of `storage`, with no SQL. Where connections and options come from is told by `application`, one
room up.
"""
