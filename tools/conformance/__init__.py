"""`make conformance`: checks the sandbox and the provider against a public client and the public description."""
