"""What belongs to a folder on disk: what it brings along, what of that would run, and trust."""
