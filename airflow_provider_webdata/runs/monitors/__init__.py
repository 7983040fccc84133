"""Runs of the operators of monitors."""
