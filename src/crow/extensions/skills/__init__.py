"""Skills: folders with a SKILL.md, listed in the system prompt and read when they are used."""

from __future__ import annotations

from crow.extensions.skills.hook import SkillsHook

__all__ = ["SkillsHook"]
