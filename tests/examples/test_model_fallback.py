"""The second model answers, and only where it can help."""

from __future__ import annotations

import pytest
from tests.examples.test_examples import load

from crow.errors import ModelError
from crow.testing import Pilot


def test_the_second_model_is_asked(crow: Pilot):
    crow.use(load("model_fallback").ModelFallback(["other"]))
    crow.run("Hi", ModelError("down", kind="overloaded"), "Hello.")
    crow.told("down: asking other now")
    crow.told("Hello.")
    assert [asked["model"] for asked in crow.model.asked][1] == "other"


def test_what_no_model_would_answer_is_not_asked_again(crow: Pilot):
    crow.use(load("model_fallback").ModelFallback(["other"]))
    with pytest.raises(ModelError, match="bad words"):
        crow.run("Hi", ModelError("bad words", kind="invalid_request"))
    assert len(crow.model.asked) == 1
