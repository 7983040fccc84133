"""Batch search: as many concurrent searches as the service accepts. Each is billed once and fails independently."""
