"""Manifests: one file per run with the pages that it saw, and detection of new and changed results."""
