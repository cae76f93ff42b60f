"""Type annotations and docstrings, read: as JSON Schema, and in words."""
