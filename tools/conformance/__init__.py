"""`make conformance`: what others wrote about the service, held against the sandbox and the provider."""
