"""The sandbox: what runs for a model is confined by the operating system."""

from __future__ import annotations

from crow.extensions.sandbox.hook import SandboxHook

__all__ = ["SandboxHook"]
