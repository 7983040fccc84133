"""Batch search: concurrent searches. Each is billed once and fails independently."""
