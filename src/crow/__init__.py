"""Crow, an ACP coding agent: a small stable loop, and everything else hung on it."""
