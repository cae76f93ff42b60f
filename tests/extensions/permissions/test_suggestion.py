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
        ("npx eslint src", ["Bash(npx eslint src)"]),
        ("python3 x.py", ["Bash(python3 x.py)"]),
        ("python3 -m pytest", ["Bash(python3 -m pytest)"]),
        ("uv run python x.py", ["Bash(uv run python x.py)"]),
        ("bun run test", ["Bash(bun run test *)"]),
        ("docker exec db psql", ["Bash(docker exec db psql)"]),
        ("docker run --rm img ls", ["Bash(docker run --rm img ls)"]),
        ("npx tsx x.ts", ["Bash(npx tsx x.ts)"]),
        ("uvx ruff check", ["Bash(uvx ruff check)"]),
        ("kubectl exec pod -- ls", ["Bash(kubectl exec pod -- ls)"]),
        ("kubectl get pods -A", ["Bash(kubectl get pods *)"]),
        ("kubectl get secrets -A", ["Bash(kubectl get secrets -A)"]),
        ("git commit -F - <<'E'\nall\nE", ["Bash(git commit *)"]),
        ("tee x.txt <<'E'\nall\nE", ["Bash(tee x.txt)"]),
        ("bash ./x.sh", ["Bash(bash ./x.sh)"]),
        ("gh pr merge 3", ["Bash(gh pr merge 3)"]),
        ("gh pr view 3", ["Bash(gh pr view *)"]),
        ("gh api repos", ["Bash(gh api repos)"]),
        ("git push origin main", ["Bash(git push origin main)"]),
        ("git config alias.x y", ["Bash(git config alias.x y)"]),
        ("npm install left-pad", ["Bash(npm install left-pad)"]),
        ("yarn run tsx x.ts", ["Bash(yarn run tsx x.ts)"]),
        ("x tests/test_auth.py::test_y", ["Bash(x tests/test_auth.py::test_y)"]),
        ("ssh host ls", ["Bash(ssh host ls)"]),
        ("apt install jq", ["Bash(apt install jq)"]),
        ("git commit -m 'token: new'", ["Bash(git commit *)"]),
        (
            "source .venv/bin/activate && pytest -q",
            ["Bash(source .venv/bin/activate)", "Bash(pytest -q)"],
        ),
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
        "bash <<'E'\nls\nE",
        "echo ls | sh",
        "echo ls | sh -s",
        "echo ls | docker exec -i db sh",
        "docker exec -i db psql <<'E'\nselect 1\nE",
        "docker run --rm img sh",
        "ssh host <<'E'\nls\nE",
        "psql db <<< 'select 1'",
    ],
)
def test_nothing_is_offered_where_no_few_plain_rules_would_do(world, command):
    assert suggest(world.permissions(), "Bash", {"command": command}, cwd=str(world.cwd)) == []


@pytest.mark.parametrize(
    "command",
    [
        "PGPASSWORD=x psql -c q",
        "MYSQL_PWD=x mysql db",
        "env API_TOKEN=x ./deploy",
        "AWS_SECRET_ACCESS_KEY=x aws s3 ls",
        "GITHUB_TOKEN=x npm test",
        "curl -H 'Authorization: Bearer abc' https://x.org",
        "curl -H 'X-Api-Key: abc' https://x.org",
        "curl -u me:word https://x.org",
        "curl -ume:word https://x.org",
        "curl --user me:word https://x.org",
        "git clone https://me:word@x.org/a",
        "./deploy --token abc",
        "./deploy --db-password=abc",
        "mysql -pword db",
        "./deploy ghp_0123456789abcdef",
        "npm install && DB_PASS=x make",
    ],
)
def test_no_rule_with_a_secret_is_offered_to_be_saved(world, command):
    assert suggest(world.permissions(), "Bash", {"command": command}, cwd=str(world.cwd)) == []


@pytest.mark.parametrize(
    "command,rules",
    [
        ("npm run build > out.txt", ["Bash(npm run build *)", "Edit(/@CWD@/out.txt)"]),
        ("make >> ./out.txt 2>&1", ["Bash(make)", "Edit(/@CWD@/out.txt)"]),
        ("make &> @TMP@/out.txt", ["Bash(make)", "Edit(/@TMP@/out.txt)"]),
        ("make > /dev/null 2> err.txt", ["Bash(make)", "Edit(/@CWD@/err.txt)"]),
        ("make 2>&1 >/dev/null", ["Bash(make)"]),
        ("echo 1 > out.txt", ["Edit(/@CWD@/out.txt)"]),
        ("(make; ls) > out.txt", ["Edit(/@CWD@/out.txt)", "Bash(make)"]),
        ("wc < @TMP@/other/x", ["Read(/@TMP@/other/x)"]),
    ],
)
def test_a_redirect_is_offered_the_rule_of_its_file(world, command, rules):
    command, rules = world.fill(command), world.fill(rules)
    assert suggest(world.permissions(), "Bash", {"command": command}, cwd=str(world.cwd)) == rules
    assert world.judge(command, allow=rules).decision == "allow"


@pytest.mark.parametrize(
    "command", ["make > $X", "make > 'a*'", "make > .git/config", "cd src && make > out.txt"]
)
def test_a_redirect_that_no_rule_answers_is_offered_none(world, command):
    assert suggest(world.permissions(), "Bash", {"command": command}, cwd=str(world.cwd)) == []


def test_a_redirect_in_accept_edits_needs_no_rule_of_its_own(world):
    permissions = world.permissions(mode="acceptEdits")
    args = {"command": "make > out.txt"}
    assert suggest(permissions, "Bash", args, cwd=str(world.cwd)) == ["Bash(make)"]
