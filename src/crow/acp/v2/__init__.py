"""Version 2 of the protocol, a draft: the same sessions, turns and questions in other words.

Only spoken where `crow.acp.initialize.AgentCapabilities.latest` says so and the client asks for it.
"""
