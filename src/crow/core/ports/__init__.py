"""The ports of the core: what a model, a client and a tool must have."""
