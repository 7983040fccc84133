"""A run of every operator, sensor, and hook method against a server. See docs/contributing/acceptance.md."""
