"""The core: a loop, the hooks that hang on it, and nothing but the standard library."""
