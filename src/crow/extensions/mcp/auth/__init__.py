"""Signing in to servers on the web: OAuth 2.1, by the means of the library."""
