"""The service as HTTP: its routes, the steps of each call before and after its operation, uploads, and downloads."""
