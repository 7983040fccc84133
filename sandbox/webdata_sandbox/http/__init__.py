"""The HTTP layer: routing, the processing around each operation, uploads, and downloads."""
