"""The output of hooks in the words of Claude Code: its fields, and what each does."""
