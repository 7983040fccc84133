"""Pages: their text as documents, their previews, and rules that recognize substitute pages."""
