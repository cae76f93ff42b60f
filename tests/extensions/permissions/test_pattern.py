"""Path patterns, against the library that other programs use for them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec
from tests.properties import examples

from crow.extensions.permissions.rules.pattern import PathPattern

segments = st.sampled_from(
    ["a", "b", "src", "*", "*.py", "a?", "[ab]", "[!a]b", "**", ".env", "a*b", "x\\*"]
)
patterns = st.builds(
    lambda start, parts, end: start + "/".join(parts) + end,
    st.sampled_from(["", "/"]),
    st.lists(segments, min_size=1, max_size=4),
    st.sampled_from(["", "/"]),
)
names = st.sampled_from(["a", "b", "src", "x.py", "ab", "aab", ".env", "x*", "ax", "bb"])
paths = st.lists(names, min_size=1, max_size=4).map("/".join)


@settings(max_examples=examples(400), deadline=None)
@given(pattern=patterns, path=paths)
def test_patterns_mean_what_gitignore_means_by_them(pattern, path):
    if not pattern.strip("/") or "//" in pattern or "**/**" in pattern or pattern.endswith("**/"):
        return
    ours = PathPattern.of(pattern, strict=True)
    spec = GitIgnoreSpec.from_lines([pattern])
    theirs = spec.match_file(path)
    if pattern.endswith("/"):
        theirs = theirs or spec.match_file(path + "/")  # it may be a directory
    assert ours.matches("/w/" + path, ["/w"]) == theirs


@pytest.mark.parametrize(
    ("rule", "path", "matches"),
    [
        ("src/**", "/w/src/x", True),
        ("src/**", "/w/src", False),
        ("src/**", "/w/a/src/x", False),
        ("./src/**", "/w/src/x", True),
        ("../o/**", "/o/x", True),
        ("../../o", "/o", True),
        ("//etc/**", "/etc/x/y", True),
        ("//etc/**", "/w/etc/x", False),
        ("~/.ssh", "/home/.ssh/id", True),
        ("~", "/home/x", True),
        ("/src", "/root/src/x", True),
        ("/src", "/root/a/src/x", False),
        ("**", "/w/a/b", True),
        ("**", "/x", False),
        ("//**", "/x", True),
        ("*.PY", "/w/x.py", False),
        ("é", "/w/e\u0301", True),
    ],
)
def test_where_a_pattern_counts_from_is_written_before_it(rule, path, matches):
    pattern = PathPattern.of(rule, strict=True)
    starts = {"/": "/", "~": "/home", "root": "/root", "cwd": "/w"}
    assert pattern.matches(path, [starts[pattern.base]]) is matches


def test_a_refusal_ignores_case_and_finds_a_directory_anywhere():
    assert PathPattern.of("*.PY", strict=False).matches("/w/x.py", ["/w"])
    assert PathPattern.of("secrets/**", strict=False).matches("/w/a/secrets/x", ["/w"])
    assert not PathPattern.of("a/secrets/**", strict=False).matches("/w/b/a/secrets/x", ["/w"])


@pytest.mark.parametrize("text", ["", "./", "!", "[z-a]"])
def test_a_pattern_without_meaning_is_an_error(text):
    with pytest.raises(ValueError, match=r"it names no path|its pattern is broken"):
        PathPattern.of(text, strict=True)
