"""Monitors: found by name, compared with what the DAG declares, kept in step; and the wait for their checks."""
