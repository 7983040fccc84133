"""Files of results, whole or absent, in all formats."""
