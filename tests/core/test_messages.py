"""What is asked of messages, and of what they cost."""

from __future__ import annotations

from crow.messages import add_usage


def test_a_usage_without_a_total_is_added_up():
    usage = add_usage({}, {"input_tokens": 900, "output_tokens": 10})
    assert usage == {"input_tokens": 900, "output_tokens": 10, "total_tokens": 910}
    assert add_usage({}, {"cost": 1.0}) == {"cost": 1.0}
