"""What programs do with their arguments; the tables are data."""
