"""Hints for people who type another agent's options and commands: the word that is right here.

Imported only where a command line has an option or a command that is none of Crow's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple


class Flag(NamedTuple):
    """An option of another agent, by all its ``names``.

    ``takes`` says what stands behind it: nothing, ``1`` word, perhaps one (``?``), or all up to the
    next option (``+``). One that is ``passed`` over changes nothing here and stops nobody.
    """

    names: str
    takes: str
    told: str
    passed: bool = False


def _passed(names: str, takes: str, told: str) -> Flag:
    return Flag(names, takes, told, passed=True)


CLOUD = "sessions run on this machine; crow fleet runs many on several"
CHROME = "add a browser's server: crow mcp add browser npx @playwright/mcp"
THINKING = "how hard the model is to think is --effort LEVEL, /think in a talk"
DEBUGGED = "CROW_DEBUG=1 shows where it fails, crow hooks explain what hooks did"
ATTACHED = "name the file in the prompt, as @FILE"
OPEN_SAFE = "crow -p --setting-sources '' --strict-mcp-config --disable-slash-commands"
UNASKED = "--mode bypassPermissions asks about nothing; --no-sandbox lets commands out as well"
OF_A_HOST = "only Claude Code's own programs say it"
ONE_KEY = "--settings '{\"NAME\": VALUE}' sets one thing"

CLAUDE: Sequence[Flag] = (
    Flag("--advisor", "1", "no model is asked beside the session's"),
    _passed("--allow-other-models", "", OF_A_HOST),
    Flag("--autocompact", "1", "extensions.compaction.fraction in the settings says when"),
    Flag("--bare --safe-mode", "", f"to leave out what is set: {OPEN_SAFE}"),
    _passed("--betas", "+", "headers of requests are 'headers' in the settings"),
    Flag("--bg --background", "", "end the command with &; crow fleet runs many at once"),
    _passed("--brief", "", "the model tells you what it has to say as its answer"),
    Flag("--channels --dangerously-load-development-channels", "+", "servers cannot send prompts"),
    Flag("--chrome", "", CHROME),
    Flag("--cloud --remote --teleport", "?", CLOUD),
    Flag("--environment --pool --ref --on-branch --metadata", "1", CLOUD),
    Flag("--cowork", "", "crow plugin lists the plugins in use"),
    _passed("-d --debug", "?", DEBUGGED),
    _passed("--debug-file", "1", DEBUGGED),
    _passed("--debug-to-stderr -d2e --mcp-debug", "", DEBUGGED),
    Flag("--desktop", "", "crow view shows sessions as a page"),
    _passed("--enable-auth-status", "", OF_A_HOST),
    _passed("--enable-auto-mode", "", "nobody judges calls in your place: crow permissions list"),
    _passed("--exclude-dynamic-system-prompt-sections", "", "the date and the branch stay apart"),
    Flag("--file", "+", ATTACHED),
    Flag("--from-pr", "?", "sessions know no pull requests: crow sessions search TEXT"),
    _passed("--ide", "", "editors start Crow: crow acp"),
    Flag("--inherit-permission-mode", "1", "--mode MODE"),
    Flag(
        "--managed-settings", "1", "the administrator's settings are files; --settings takes JSON"
    ),
    _passed("--max-thinking-tokens", "1", THINKING),
    _passed("--no-chrome", "", "there is no browser that would be started"),
    _passed("--parent-session-id --workload --messaging-socket-path", "1", OF_A_HOST),
    Flag("--plan-mode-instructions", "1", "--append-system-prompt TEXT"),
    Flag("--plan-mode-required", "", "--mode plan"),
    Flag("--plugin-dir-no-mcp", "1", "--plugin-dir DIR with --strict-mcp-config"),
    Flag("--plugin-url", "1", "crow plugin add takes a repository"),
    Flag("--prefill", "1", 'crow "PROMPT" begins a talk with it'),
    _passed("--prompt-suggestions", "?", "none are made"),
    Flag("--remote-control --rc", "?", "crow acp --listen ADDRESS lets clients in"),
    Flag("--remote-control-session-name-prefix", "1", "crow acp --listen ADDRESS lets clients in"),
    _passed("--reply-on-resume", "", "a prompt goes on"),
    Flag("--restricted", "", "--setting-sources '' --disallowedTools Bash,WebFetch"),
    Flag("--resume-session-at", "1", "crow sessions fork ID, then crow sessions rewind ID"),
    Flag("--rewind-files", "1", "crow sessions rewind ID"),
    Flag("--sdk-url", "1", "crow acp --listen ADDRESS"),
    _passed("--session-mirror", "", "sessions are kept by Crow: crow sessions export ID"),
    _passed("--system-prompt-snapshot", "1", "it is put together once a session anyway"),
    Flag("--task-budget", "1", "--max-budget-usd USD, --max-turns N"),
    Flag(
        "--team-name --agent-id --agent-name --agent-color --agent-type", "1", "there are no teams"
    ),
    _passed("--thinking --thinking-display", "1", THINKING),
    Flag("--tmux", "?", "tmux new-session crow --worktree"),
    Flag("--watch-artifact", "1", CLOUD),
)
CODEX: Sequence[Flag] = (
    Flag(
        "--approve-for-me --full-auto", "", "--mode acceptEdits; commands run in a sandbox anyway"
    ),
    Flag(
        "-a --ask-for-approval", "1", "--mode MODE; dontAsk asks about nothing that is not allowed"
    ),
    Flag("-C --cd", "1", "--cwd DIR"),
    _passed("--color", "1", "NO_COLOR=1 leaves colours out"),
    Flag("--config", "1", ONE_KEY),
    Flag("--dangerously-bypass-approvals-and-sandbox --yolo", "", UNASKED),
    Flag("--dangerously-bypass-hook-trust --trust", "", "crow trust lets a project's hooks run"),
    Flag("--enable --disable", "1", "extensions.disable in the settings switches extensions off"),
    Flag("--ephemeral", "", "--no-session-persistence"),
    Flag("--ignore-rules --ignore-user-config", "", "--setting-sources '' reads no settings"),
    Flag("-i --image", "+", ATTACHED),
    _passed("--no-alt-screen", "", "the terminal keeps what it has shown anyway"),
    _passed("--no-daemon", "", "there is none"),
    Flag("--oss", "", "--model ollama/NAME, lmstudio/NAME; crow models lists what runs here"),
    Flag("--local-provider", "1", "--model ollama/NAME, lmstudio/NAME"),
    Flag("-o --output-last-message", "1", "crow run writes the answer alone into a pipe: > FILE"),
    Flag("--output-schema", "1", "--json-schema @FILE"),
    Flag("--profile", "1", "--settings FILE is one"),
    Flag(
        "-s --sandbox", "1", "crow sandbox; --mode plan changes nothing, --no-sandbox confines not"
    ),
    _passed("--search", "", "the tools WebSearch and WebFetch are there (docs/tools.md)"),
    _passed("--skip-git-repo-check", "", "no repository is needed"),
    _passed("--strict-config", "", "what does not fit is said anyway: crow config"),
    Flag("--remote-auth-token-env", "1", "crow acp --listen ADDRESS lets clients in"),
    _passed("--thread-source --cyber-access-program", "1", "only codex' own service knows it"),
    Flag("-V", "", "--version"),
)
PI: Sequence[Flag] = (
    Flag("--api-key", "1", "crow login keeps it, or the provider's variable has it"),
    Flag("--export", "1", "crow export --html SESSION"),
    Flag("-e", "1", "--extension FILE"),
    Flag("--fork", "?", "--resume ID --fork-session"),
    Flag("--list-models", "?", "crow models"),
    Flag("--models", "1", "'models' in the settings; /model chooses"),
    Flag(
        "--no-context-files -nc", "", '--settings \'{"extensions": {"disable": ["instructions"]}}\''
    ),
    Flag("--no-extensions -ne", "", '--settings \'{"extensions": {"disable": ["NAME"]}}\''),
    Flag("--no-prompt-templates -np --no-skills -ns", "", "--disable-slash-commands"),
    Flag("--no-session", "", "--no-session-persistence"),
    _passed("--no-themes", "", "there are none"),
    Flag("--no-tools -nt --no-builtin-tools -nbt", "", "--tools ''"),
    _passed("--offline", "", "nothing is loaded when Crow starts"),
    Flag(
        "--prompt-template --skill", "1", "commands lie in .crow/commands, skills in .crow/skills"
    ),
    Flag("--provider", "1", "--model PROVIDER/NAME"),
    Flag("--session", "1", "--resume ID"),
    Flag("--session-dir", "1", "extensions.persistence in the settings says where"),
    Flag("-t", "1", "--tools NAME,..."),
    _passed("--theme", "1", "a terminal's own colours are used"),
)
OPENCODE: Sequence[Flag] = (
    Flag("--attach --password --username -u", "1", "crow acp --listen ADDRESS lets clients in"),
    Flag("--auto", "", UNASKED),
    Flag("--command", "1", 'it is the beginning of the prompt: crow run "/NAME ..."'),
    Flag("--dir", "1", "--cwd DIR"),
    Flag("-f", "+", ATTACHED),
    Flag("--format", "1", "--json has events; --output-format json the result alone"),
    _passed("--interactive --mini", "", "crow alone talks"),
    _passed("--log-level", "1", DEBUGGED),
    _passed("--no-replay --print-logs", "", DEBUGGED),
    Flag("--port --hostname --cors --mdns-domain", "1", "crow acp --listen ADDRESS"),
    Flag("--mdns", "", "crow acp --listen ADDRESS"),
    Flag("--prompt", "1", 'crow "PROMPT"'),
    Flag("--pure", "", '--settings \'{"extensions": {"disable": ["NAME"]}}\''),
    _passed("--replay-limit", "1", "what was said is there to scroll"),
    Flag("--share", "", "crow export --html SESSION writes a page"),
    Flag("--title", "1", "--name TITLE"),
    Flag("--variant", "1", "--effort LEVEL"),
)
ALL: Mapping[str, Sequence[Flag]] = {
    "Claude Code": CLAUDE,
    "codex": CODEX,
    "pi": PI,
    "opencode": OPENCODE,
}
"""The options of each agent; of one name the first agent's counts."""

IN_FLEET = "crow sessions --live lists what is open; crow fleet runs many at once"
COMMANDS: Mapping[str, str] = {
    "agent": "an agent is a file: .crow/agents/NAME.md",
    "agents": IN_FLEET,
    "app-server": "crow acp",
    "apply": "what the agent changes is in the working tree; crow fleet patch ID",
    "archive": "crow sessions archive ID",
    "attach": "crow --resume ID",
    "auth": "crow login, crow logout",
    "auto-mode": "nobody judges calls in your place: crow permissions list",
    "cloud": CLOUD,
    "db": "crow sessions",
    "debug": DEBUGGED,
    "delete": "crow sessions delete ID",
    "doctor": "crow config, crow ext list, crow sandbox and crow models check say what is wrong",
    "e": 'crow run "PROMPT"',
    "exec": 'crow run "PROMPT"',
    "exec-server": "crow acp --listen ADDRESS",
    "features": "crow ext list",
    "fork": "crow --resume ID --fork-session",
    "gateway": CLOUD,
    "github": CLOUD,
    "install": "crow ext new writes an extension, crow plugin add gets a plugin",
    "kill": IN_FLEET,
    "list": "crow ext list",
    "logs": IN_FLEET,
    "pr": "git fetch and git switch, then crow",
    "project": "crow trust; crow sessions delete ID",
    "providers": "crow models, crow login",
    "purge": "crow sessions delete ID",
    "queue": IN_FLEET,
    "remote-control": "crow acp --listen ADDRESS",
    "remove": "crow plugin remove NAME",
    "respawn": IN_FLEET,
    "resume": "crow --resume ID, crow --continue for the latest",
    "review": 'crow run "Review ..."; a skill or a command says how',
    "rm": IN_FLEET,
    "serve": "crow acp --listen ADDRESS",
    "session": "crow sessions",
    "setup-token": "crow login",
    "stats": "crow sessions show ID has what one cost",
    "stop": IN_FLEET,
    "ultrareview": 'crow run "Review ..."; a skill or a command says how',
    "unarchive": "crow sessions unarchive ID",
    "uninstall": "uv tool uninstall crow-acp, or pipx; crow plugin remove NAME",
    "update": "uv tool upgrade crow-acp, or pipx upgrade crow-acp",
    "upgrade": "uv tool upgrade crow-acp, or pipx upgrade crow-acp",
    "web": "crow view",
}
"""Commands of other agents that Crow has not."""
ACTIONS: Mapping[str, str] = {
    "mcp add-from-claude-desktop": "crow mcp add NAME COMMAND, for each",
    "mcp reset-project-choices": "crow trust asks again where something has changed",
    "mcp auth": "crow mcp login NAME",
    "plugin autoremove": "crow plugin remove NAME",
    "plugin details": "crow plugin lists what each brings",
    "plugin init": "crow ext new NAME writes an extension; a plugin is a folder",
    "plugin new": "crow ext new NAME writes an extension; a plugin is a folder",
    "plugin prune": "crow plugin remove NAME",
    "plugin tag": "git tag",
    "plugin validate": "crow plugin add DIR shows what it brings and asks",
}
"""Actions of their commands that Crow's have not."""


def flag(name: str) -> tuple[str, Flag] | None:
    """An option that is another agent's, and whose."""
    rows = ((whose, row) for whose, rows in ALL.items() for row in rows)
    return next(((whose, row) for whose, row in rows if name in row.names.split()), None)


def drop_foreign_options(
    argv: Sequence[str], known: Mapping[str, object]
) -> tuple[list[str], list[str], str]:
    """A command line without what is passed over, and a line about each of it.

    The last is what is wrong with an option that has another name here, or that would change what
    happens. ``known`` are the options that there are.
    """
    left: list[str] = []
    notes: list[str] = []
    words = iter(range(len(argv)))
    for at in words:
        word = argv[at]
        name, given, _ = word.partition("=")
        found = None if name in known or not is_option(word) else flag(name)
        if found is None:
            left.append(word)
            continue
        whose, row = found
        if not row.passed:
            return left, notes, f"{name} is {whose}'s: {row.told}"
        notes.append(f"{name} is {whose}'s and passed over: {row.told}")
        for _ in range(0 if given else operand_count(row, argv[at + 1 :])):
            next(words)
    return left, notes, ""


def operand_count(row: Flag, rest: Sequence[str]) -> int:
    """How many of the words behind an option are its own."""
    free = len([*takewhile(lambda word: not is_option(word), rest)])
    if row.takes == "?":
        return int(free > 0 and not re.search(r"\s", rest[0]))
    return free if row.takes == "+" else min(free, len(row.takes))


def is_option(word: str) -> bool:
    """True for what argparse takes for an option."""
    return word.startswith("-") and word != "-" and " " not in word.partition("=")[0]


def command(name: str) -> str:
    """What is to be said for a command that is another agent's; empty for anything else."""
    told = COMMANDS.get(name, "")
    return f"crow has no command {name!r}: {told}" if told else ""


def action(of: str, name: str) -> str:
    """The same for an action of a command."""
    told = ACTIONS.get(f"{of} {name}", "")
    return f"crow {of} has no action {name!r}: {told}" if told else ""


def names() -> Iterator[str]:
    """All options that other agents have."""
    for rows in ALL.values():
        for row in rows:
            yield from row.names.split()
