"""All vectors of the contract kit, and what the kit says of pieces and does not check itself."""

from __future__ import annotations

from typing import Any

import pytest
from agent_hooks.ctk import load_vectors, run_vector
from crow_agent_hooks.harness import CrowHarness

VECTORS = load_vectors()


@pytest.mark.parametrize("vector", VECTORS, ids=[each["id"] for each in VECTORS])
async def test_crow_keeps_the_contract(vector: dict[str, Any]):
    harness = CrowHarness()
    result = await run_vector(harness, vector)
    assert (result.status, result.detail, result.failures) == ("pass", "", [])
    if "released_output" in vector["expect"]:
        assert harness.shown == vector["expect"]["released_output"]
    for secret in vector["expect"].get("persisted_must_not_contain", ()):
        assert secret not in str(harness.stored)


def test_no_vector_is_left_out():
    assert len(VECTORS) == 75
