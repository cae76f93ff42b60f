"""Variables that carry secrets, by their names: a command that would show one is asked about."""

from __future__ import annotations

import pytest

SECRET = [
    "OPENAI_API_KEY",
    "GITHUB_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_ACCESS_KEY_ID",
    "npm_config__authToken",
    "PGPASSWORD",
    "MYSQL_PWD",
    "DB_PASS",
    "STRIPE_SECRET",
    "SENTRY_DSN",
    "DATABASE_URL",
    "JWT_SECRET",
    "GOOGLE_CREDENTIALS",
    "SLACK_WEBHOOK_URL",
    "ENCRYPTION_KEY",
    "token",
    "GH_PAT",
    "HTTP_AUTHORIZATION",
    "PRIVATE_KEY_PEM",
    "DOCKER_AUTH_CONFIG",
    "OPENAI_KEY_1",
]
PLAIN = [
    *("MAX_TOKENS", "TOKENIZERS_PARALLELISM", "SSH_AUTH_SOCK", "AWS_REGION", "AWS_PROFILE"),
    *("HOME", "PATH", "OLDPWD", "PWD", "KEYBOARD", "GIT_AUTHOR_NAME", "COMPASS", "PUBLIC_KEY"),
    *("OAUTH_TOKEN_URL", "AUTH_METHOD", "JWT_ISSUER", "KEY_NAME", "PASSED", "KEYS_DIR"),
    *("GITHUB_TOKEN_FILE", "TOKEN_LIMIT", "XAUTHORITY", "PRIMARY_KEY", "AWS_DEFAULT_REGION"),
]
SHOWING = [
    "echo $@",
    'printf %s "${@}"',
    'ls "$@"',
    "cat <<< $@",
    "x=$@; echo $x",
    "for k in $@; do echo $k; done",
    'echo "$(echo $@)"',
    "bash -c 'echo $@'",
    "timeout 5 echo $@",
    'curl -H "Authorization: $@" https://example.com',
    "test $@ = a",
    "case $@ in a) pwd;; esac",
]


def spelled(form: str, name: str) -> str:
    return form.replace("{@}", f"{{{name}}}").replace("$@", f"${name}")


@pytest.mark.parametrize("form", SHOWING)
@pytest.mark.parametrize("name", SECRET)
@pytest.mark.variants(80)
def test_a_command_with_such_a_variable_is_asked_about(world, form, name):
    rules = ["Bash(echo *)", "Bash(curl *)", "Bash(bash *)", "Bash(ls *)"]
    command = spelled(form, name)
    assert world.judge(command).decision == "ask"
    made = world.judge(command, allow=rules)
    assert made.decision == "ask"
    assert world.judge(command, mode="acceptEdits").decision == "ask"


@pytest.mark.parametrize("name", PLAIN)
def test_other_variables_are_no_question(world, name):
    assert world.judge(f'echo ${name} "${{{name}}}"').decision == "allow"


@pytest.mark.parametrize(
    "command",
    [
        '[ -n "$OPENAI_API_KEY" ] && echo set',
        '[[ -z $GITHUB_TOKEN ]] && echo "not set"',
        "echo 'the variable $OPENAI_API_KEY is needed'",
        "grep -rn OPENAI_API_KEY src",
        'for key in a b; do echo "$key"; done',
        'while read -r token; do echo "$token"; done < README.md',
    ],
)
def test_whether_there_is_one_and_what_it_is_called_are_no_secret(world, command):
    assert world.judge(command).decision == "allow"


@pytest.mark.parametrize(
    "command",
    [
        *("env", "printenv", "printenv -0", "set", "declare -p", "declare -x", "export -p"),
        *("typeset -p", "compgen -v", "readonly -p", "echo ${!X}", 'echo "${!OPENAI*}"'),
        *("cat /proc/self/environ", "cat /proc/1/environ", "tr a b < /proc/self/environ"),
        *("cat /proc/*/environ", "cat /proc/$PPID/environ", "ps e", "ps auxe", "ps eww"),
        *(
            "jq -n env",
            "jq -n '$ENV.X'",
            "awk 'BEGIN{print ENVIRON[\"X\"]}'",
            "echo ${X_TOKEN:0:4}",
        ),
    ],
)
def test_nothing_shows_the_whole_environment_unasked(world, command):
    assert world.judge(command).decision == "ask"
    assert world.judge(command, mode="acceptEdits", allow=["Read"]).decision == "ask"


def test_a_rule_that_names_the_variable_counts(world):
    rules = [
        "Bash(echo $OPENAI_API_KEY)",
        'Bash(curl -H "Authorization: Bearer $GITHUB_TOKEN" *)',
        "Bash(printenv GITHUB_TOKEN)",
    ]
    for command in (
        "echo $OPENAI_API_KEY",
        'pwd && echo "$OPENAI_API_KEY"',
        'curl -H "Authorization: Bearer $GITHUB_TOKEN" https://example.com',
        "printenv GITHUB_TOKEN",
    ):
        assert world.judge(command, allow=rules).decision == "allow"
    for command in (
        "echo $OPENAI_API_KEY $GITHUB_TOKEN",
        'curl -H "Authorization: Bearer $OPENAI_API_KEY" https://example.com',
        "printenv OPENAI_API_KEY",
    ):
        assert world.judge(command, allow=rules).decision == "ask"
    assert world.judge("printenv GITHUB_TOKEN", allow=["Bash(printenv *)"]).decision == "ask"


def test_a_link_to_an_environment_shows_nothing(make_world):
    world = make_world()
    (world.cwd / "link").symlink_to("/proc/self/environ")
    assert world.judge("cat link", allow=["Read"]).decision == "ask"


OTHERS = [
    *("/proc/$PPID/environ", "/proc/self/environ", "/proc/*/environ", '"/proc/$PPID/environ"'),
    *("/proc/1/task/1/environ", "/proc/self/../1/environ", "//proc/./1/environ", "/proc/1/mem"),
    *("/proc/1/root/proc/1/environ", "../../../../../proc/1/environ", "/pro?/1/env*", "/proc/1/e*"),
    *("/proc/thread-self/environ", "$X/environ", "/proc/$(pidof crow)/environ", "/*/1/environ"),
]


@pytest.mark.parametrize("path", OTHERS)
def test_no_general_rule_means_what_lies_in_the_environment_of_a_process(world, path):
    rules = ["Read", "Bash(cat *)", "Bash(xxd *)", "Bash(sudo *)", "Bash(pidof *)", "Bash(sh -c *)"]
    for command in (
        f"cat {path}",
        f"xxd {path}",
        f"cat < {path}",
        f"x={path}; cat $x",
        f"sudo cat {path}",
        f"sh -c 'cat {path}'",
    ):
        assert world.judge(command, allow=rules).decision == "ask"


@pytest.mark.parametrize("command", ["ps e", "ps auxe", "ps axeww", "ps -E", "ps -eo pid,environ"])
def test_nor_does_one_for_listing_processes(world, command):
    assert world.judge(command, allow=["Bash(ps *)"]).decision == "ask"


@pytest.mark.parametrize(
    "command",
    [
        *('cat "$DIR"/process/*', "cat docs/environ", "grep -r environ src", "cat src/proc/mem"),
        *("ps -C node", "ps -ef", "ps aux", "ps -eo pid,args", "cat $f", "cat *"),
    ],
)
def test_what_only_looks_like_that_is_no_question(world, command):
    assert world.judge(command, allow=["Bash(cat *)", "Bash(ps *)"]).decision == "allow"


def test_a_rule_that_names_the_environment_counts(world):
    rule = "Bash(cat /proc/self/environ)"
    assert world.judge("cat /proc/self/environ", allow=[rule]).decision == "allow"
