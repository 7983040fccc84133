"""One poller for each connection: each thing of the service is polled once, however many wait for it."""
