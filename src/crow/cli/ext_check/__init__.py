"""Checks of an extension: by loading it, reading it and playing it."""
