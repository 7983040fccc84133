"""Manifests: one file per run with the pages that it saw, and what is new or changed in the results of a new run."""
