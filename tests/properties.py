"""How many examples of a property are tried: all with `-m slow`, a tenth of them otherwise."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

for name, number in (("all", 100), ("a tenth", 10)):
    settings.register_profile(
        name, max_examples=number, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )  # how long an example takes says how busy the machine is


def choose(config: pytest.Config) -> bool:
    """Decide by the marks that were asked for, before any test is imported; whether it is all."""
    marks = str(config.getoption("markexpr")).replace("not slow", "")
    is_all = "slow" in marks
    settings.load_profile("all" if is_all else "a tenth")
    return is_all


def examples(number: int) -> int:
    """For ``settings(max_examples=...)``: this many with `-m slow`."""
    return max(min(number, 5), number * settings().max_examples // 100)
