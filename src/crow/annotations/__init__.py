"""What type annotations and docstrings say: as JSON Schema, and in words."""
