"""Programs and the effects of their arguments; the tables are data."""
