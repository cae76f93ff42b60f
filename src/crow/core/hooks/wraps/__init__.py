"""Hooks that go around something."""
