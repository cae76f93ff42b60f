"""Paths that calls name: where they lead, and what the rules say of them."""
