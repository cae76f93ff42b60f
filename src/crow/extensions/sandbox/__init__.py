"""The sandbox: what runs for a model is confined by the operating system."""
