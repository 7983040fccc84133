"""The pages, one module each: requests, permissions, and template values."""
