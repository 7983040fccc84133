"""The service as HTTP: its routes, what happens to each call before and after its operation, files sent and fetched."""
