"""Runs of the monitor operators."""
