"""`make conformance`: check the sandbox and the provider against public clients and the OpenAPI description."""
