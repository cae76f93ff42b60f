"""Shell commands: two parsers, one pass over what they read, and the rules that speak of it."""
