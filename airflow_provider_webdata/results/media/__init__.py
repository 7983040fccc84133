"""Copies of media, which the service links for a limited time."""
