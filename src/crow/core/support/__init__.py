"""Support of the core that knows nothing of agents: values, checks, tasks and their time."""
