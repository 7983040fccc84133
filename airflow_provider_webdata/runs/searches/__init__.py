"""Batch search: concurrent searches. Each fails independently."""
