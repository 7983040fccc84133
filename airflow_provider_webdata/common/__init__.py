"""Helpers shared by several packages of the provider."""
