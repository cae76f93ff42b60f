"""What is wrong with an extension, found by loading it, reading it and playing it."""
