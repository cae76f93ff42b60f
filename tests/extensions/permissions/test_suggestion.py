"""What "always allow" means for a call: rules that say no more than they must."""

from __future__ import annotations

import pytest

from crow.extensions.permissions.suggestion import suggest


@pytest.mark.parametrize(
    "command,rules",
    [
        ("make all", ["Bash(make all *)"]),
        ("./run.sh x", ["Bash(./run.sh x)"]),
        ("npm run build && npm test", ["Bash(npm run build *)", "Bash(npm test *)"]),
        ("ls; make", ["Bash(make)"]),
        ("timeout 5 make", ["Bash(make)"]),
        ("NODE_ENV=x npm test", ["Bash(npm test *)"]),
        ("FOO=1 npm test", ["Bash(FOO=1 npm test *)"]),
        ("git commit -m \"$(cat <<'E'\nall\nE\n)\"", ["Bash(git commit *)"]),
        ("git -C x status", ["Bash(git -C x status)"]),
        ("npx eslint src", ["Bash(npx eslint *)"]),
        ("python3 x.py", ["Bash(python3 x.py)"]),
        ("python3 -m pytest", ["Bash(python3 -m pytest)"]),
        ("uv run python x.py", ["Bash(uv run python x.py)"]),
        ("bun run test", ["Bash(bun run test *)"]),
        ("a; b; c; d; e", [f"Bash({name})" for name in "abcde"]),
    ],
)
def test_a_command_is_offered_the_rules_that_let_it_run(world, command, rules):
    permissions = world.permissions()
    assert suggest(permissions, "Bash", {"command": command}, cwd=str(world.cwd)) == rules
    assert world.judge(command, allow=rules).decision == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "git $X",
        "make $X",
        "A=$X make",
        "npm run $(x)",
        "rm -rf /",
        "a;b;c;d;e;f",
        "find . | xargs rm",
        "python3 - <<'E'\nprint(1)\nE",
        "echo 1 | python3 -u",
        "node <<'E'\n1\nE",
        "env python3 <<'E'\n1\nE",
        "uv run python - <<'E'\n1\nE",
    ],
)
def test_nothing_is_offered_where_no_few_plain_rules_would_do(world, command):
    assert suggest(world.permissions(), "Bash", {"command": command}, cwd=str(world.cwd)) == []
