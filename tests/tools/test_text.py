"""Cutting between graphemes."""

from __future__ import annotations

import pytest

from crow.tools.text import CLUSTER, boundary

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
FLAGS = "\U0001f1eb\U0001f1f7\U0001f1e9\U0001f1ea"


@pytest.mark.parametrize(
    "text, places",
    [
        ("", {0}),
        ("abc", {0, 1, 2, 3}),
        ("a\r\nb", {0, 1, 3, 4}),
        ("e\u0301x", {0, 2, 3}),
        (f"a{FAMILY}b", {0, 1, 6, 7}),
        (FLAGS, {0, 2, 4}),
        ("\U0001f44d\U0001f3fd!", {0, 2, 3}),
        ("\ud83d\ude00.", {0, 2, 3}),
    ],
)
def test_a_text_is_cut_only_between_graphemes(text, places):
    assert {boundary(text, index) for index in range(len(text) + 1)} == places
    assert {boundary(text, index, forward=True) for index in range(len(text) + 1)} == places


def test_a_place_outside_of_the_text_is_its_end():
    assert boundary("abc", 7) == 3
    assert boundary("abc", -1) == 0


def test_a_cluster_longer_than_any_script_makes_is_cut_after_all():
    text = "a" + "\u0301" * 3 * CLUSTER
    assert boundary(text, 100) == 100
