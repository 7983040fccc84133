"""`make conformance`: checks the sandbox and the provider against the public clients and the public description."""
