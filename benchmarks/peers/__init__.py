"""Whole agents and SDKs side by side, against one scripted model (``make bench-peers``)."""
