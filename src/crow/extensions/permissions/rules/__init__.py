"""Permission rules as people write them, parsed."""
