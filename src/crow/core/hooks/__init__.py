"""Hooks: hung, called and heard; the contexts that they see."""
