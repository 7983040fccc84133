"""One poller for each connection: each monitor and job is polled once, however many waits share it."""
