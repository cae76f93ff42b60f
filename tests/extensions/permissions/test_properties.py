"""What must hold for every call, whatever the rules: tried with made-up ones."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties import examples

from crow.extensions.permissions import MODES, LocalDisk, Permissions
from crow.extensions.permissions.shell.shfmt import SecondOpinion

SECOND = SecondOpinion()
DISK = LocalDisk("/nonexistent/home")
CWD = "/nonexistent/work"
ORDER = {"allow": 0, "ask": 1, "deny": 2}

programs = st.sampled_from(["npm", "curl", "git", "rm", "ls", "cat", "echo", "make", "x"])
arguments = st.sampled_from(
    ["run", "build", "-rf", "push", "$X", '"$(curl y)"', "a b", "*.py", "--force", "/etc/x", "src"]
)
commands = st.builds(
    lambda name, args: " ".join([name, *args]), programs, st.lists(arguments, max_size=4)
)
scripts = st.recursive(
    commands,
    lambda inner: st.one_of(
        st.builds(
            lambda a, op, b: f"{a} {op} {b}",
            inner,
            st.sampled_from(["&&", "||", "|", ";", "&"]),
            inner,
        ),
        st.builds(lambda a: f"({a})", inner),
        st.builds(lambda a: f"echo $({a})", inner),
        st.builds(lambda a: f"if {a}; then {a}; fi", inner),
        st.builds(lambda a: f"timeout 5 {a}", inner),
        st.builds(lambda a: f"{a} > out", inner),
    ),
    max_leaves=4,
)
rules = st.one_of(
    st.sampled_from(
        ["Bash", "Bash(npm run *)", "Bash(git *)", "Bash(* build)", "Bash(ls:*)", "Read"]
    ),
    st.builds(lambda command: f"Bash({command})", commands),
    st.builds(lambda name: f"Bash({name} *)", programs),
)
modes = st.sampled_from(sorted(MODES))


def judge(command: str, **options: Any) -> str:
    permissions = Permissions.of(disk=DISK, second=SECOND, **options)
    return permissions.judge("Bash", {"command": command}, cwd=CWD).decision


@settings(max_examples=examples(150), deadline=None)
@given(
    command=scripts,
    allow=st.lists(rules, max_size=3),
    more=rules,
    deny=st.lists(rules, max_size=2),
    mode=modes,
)
def test_one_more_allow_rule_never_softens_a_refusal_by_a_rule(command, allow, more, deny, mode):
    before = Permissions.of(
        allow=allow, deny=deny, ask=deny[:1], mode=mode, disk=DISK, second=SECOND
    )
    args = {"command": command}
    first = before.judge("Bash", args, cwd=CWD)
    second = before.with_rule(more).judge("Bash", args, cwd=CWD)
    assert ORDER[second.decision] <= ORDER[first.decision]
    if first.rule is not None and first.decision != "allow":
        assert second.decision == first.decision


@settings(max_examples=examples(100), deadline=None)
@given(
    command=scripts, allow=st.lists(rules, max_size=3), deny=st.lists(rules, min_size=1, max_size=2)
)
def test_a_denial_stands_in_every_mode(command, allow, deny):
    made = {judge(command, allow=allow, deny=deny, mode=mode) for mode in MODES}
    if judge(command, allow=allow, deny=deny) == "deny":
        assert made == {"deny"}


@settings(max_examples=examples(100), deadline=None)
@given(command=scripts, allow=st.lists(rules, max_size=3), more=rules, mode=modes)
def test_one_more_deny_rule_never_lets_more_through(command, allow, more, mode):
    before = judge(command, allow=allow, mode=mode)
    after = judge(command, allow=allow, deny=[more], mode=mode)
    assert ORDER[after] >= ORDER[before]


DISGUISES = (
    lambda name, rest: f"{name[0]}''{name[1:]} {rest}",
    lambda name, rest: f'{name[0]}"{name[1:]}" {rest}',
    lambda name, rest: f"'{name}' {rest}",
    lambda name, rest: f"\\{name} {rest}",
    lambda name, rest: f"{name[:-1]}\\{name[-1]} {rest}",
    lambda name, rest: f"$'\\x{ord(name[0]):02x}{name[1:]}' {rest}",
    lambda name, rest: f"$'\\{ord(name[0]):03o}{name[1:]}' {rest}",
    lambda name, rest: "{" + f"{name} {rest}".replace(" ", ",") + "}",
    lambda name, rest: f"{name}$IFS{rest}",
    lambda name, rest: f"x={name}; $x {rest}",
    lambda name, rest: f"$(echo {name}) {rest}",
    lambda name, rest: f"`echo {name}` {rest}",
    lambda name, rest: f"/usr/bin/{name} {rest}",
    lambda name, rest: f"/usr/bin/{name[:-1]}? {rest}",
    lambda name, rest: f"{name[0]}\u200b{name[1:]} {rest}",
    lambda name, rest: f"{name[0]}\\\n{name[1:]} {rest}",
    lambda name, rest: f"echo {rest} | xargs -n1 {name}",
)
PREFIXES = (
    "env {}", "env -i A=1 {}", "nice -n 5 {}", "timeout -k 1 5 {}", "nohup {}", "sudo -u x {}",
    "command {}", "exec {}", "stdbuf -oL {}", "setsid {}", "watch -n 1 {}", "flock /tmp/l {}",
    "eval {}", "xargs {}", "busybox {}", "find . -exec {} ';'",
)  # fmt: skip
FRAMES = (
    "bash -c '{}'", "sh -c \"{}\"", "eval '{}'", "time {}", "! {}", "( {} )", "{{ {}; }}",
    "echo $({})", "cat <({})", "if {}; then :; fi", "while {}; do :; done", "A=1 {}", "> out {}",
    "f() {{ {}; }}; f", "true && {}", "true || {}", "true; {}", "true & {}", "true | {}",
    "true\n{}", "case a in a) {};; esac", "trap '{}' EXIT", "env -S '{}'", "coproc {}",
    "cat <<E\n$({})\nE", "x=$({})", "for i in $({}); do :; done", "watch '{}'",
)  # fmt: skip


def wrap(command: str, prefixes: list[str], frames: list[str]) -> str:
    """The command behind other commands, then inside of other syntax."""
    for one in [*prefixes, *frames]:
        if not any(quote in command and quote in one for quote in "'\""):
            command = one.format(command)
    return command


prefixed = st.lists(st.sampled_from(PREFIXES), max_size=2)
framed = st.lists(st.sampled_from(FRAMES), max_size=2)


@settings(max_examples=examples(150), deadline=None)
@given(
    name=st.sampled_from(["curl", "wget", "scp"]),
    rest=st.sampled_from(["x", "http://h/p", "-s x"]),
    disguise=st.sampled_from(DISGUISES),
    prefixes=prefixed,
    frames=framed,
    mode=modes,
)
def test_no_disguise_and_no_wrapper_gets_a_denied_program_through(
    name, rest, disguise, prefixes, frames, mode
):
    command = wrap(disguise(name, rest), prefixes, frames)
    assert judge(command, allow=["Bash"], deny=[f"Bash({name} *)"], mode=mode) != "allow"


@settings(max_examples=examples(150), deadline=None)
@given(prefixes=prefixed, frames=framed)
def test_no_wrapper_hides_what_no_rule_covers(prefixes, frames):
    command = wrap("curl x", prefixes, frames)
    allow = ["Bash(echo *)", "Bash(cat *)", "Bash(true)", "Bash(npm *)"]
    assert judge(command, allow=allow) != "allow"


@settings(max_examples=examples(300), deadline=None)
@given(
    command=st.one_of(st.text(), st.text(alphabet="ab $(){}[]'\"`\\\n;&|<>*?!#=~-@:,.^%+/0")),
    mode=modes,
)
def test_any_text_at_all_is_decided_on(command, mode):
    made = judge(command, allow=["Bash(a *)", "Bash(b)"], deny=["Bash(c *)"], mode=mode)
    assert made in ORDER


@settings(max_examples=examples(100), deadline=None)
@given(
    tool=st.sampled_from(
        ["Bash", "Read", "Edit", "Glob", "WebFetch", "Agent", "Skill", "mcp__a__b", "?"]
    ),
    args=st.dictionaries(
        st.sampled_from(["command", "file_path", "path", "url", "pattern", "skill", "x"]),
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.lists(st.text())),
    ),
    deny=st.sampled_from(["x(y:*)", "Read(.env)", "WebFetch(domain:a)", "Skill(a)", "*"]),
    rule=st.text(),
)
def test_any_arguments_and_any_rule_are_decided_on(tool, args, deny, rule):
    permissions = Permissions.of(allow=[rule], deny=[deny], disk=DISK, second=SECOND)
    assert permissions.judge(tool, args, cwd=CWD).decision in ORDER
