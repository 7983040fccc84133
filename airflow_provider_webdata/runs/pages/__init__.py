"""Runs that read pages, and browser sessions."""
