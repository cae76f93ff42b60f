"""Makes up argument lists for the programs that may run unasked, and judges what they did.

The lists are built from the tables, from what each program's ``--help`` says, and from what misreads
easily: clusters, abbreviations, numbers and values glued to letters, options behind operands, globs
that match files named like options. Those that Crow allows without any rule run under a tracer.
"""

from __future__ import annotations

import random
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.tracing import Deeds

from crow.extensions.permissions import LocalDisk, Permissions
from crow.extensions.permissions.programs.table import Program, git_command, git_commands, programs
from crow.extensions.permissions.shell.shfmt import SecondOpinion

BUILTINS = frozenset({"type", "read", "exit", "break", "continue", "wait", "set", ":", "[["})
ASLEEP = re.compile(r"(?:tail|sleep|busybox)\b")
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.@"
VALUES = (
    "a list w d 1 5 0 -1 +2 , : x out -o -f --output=w --files0-from=list ./evil /etc/hostname .env "
    "../outside/key link/key lfile always never auto name now @0 %s %n %G? %(describe) '*' '*.txt' = "
    "json path recurse skip '' -- - 1,2 s t e/x"
).split()  # fmt: skip
FILES = "link/key lfile /etc/hostname ../outside/key list sums a ~/.ssh/id_rsa w ./evil".split()
OPERANDS = (
    "a b a b a d d . sums z.gz a d/x e list json .env . ./a lfile link link/key ../outside/key /etc/hostname "
    "~/.ssh/id_rsa * ?* [-]* -* d/* *.txt {a,b} {-o,w} $X \"$X\" - -- nope 5 +5 +1 @list <(:) '' a=b "
    "'*' -o w -rf dir/ /dev/null /dev/tcp/127.0.0.1/9 $(echo) \"a$X\" -\"$X\" --lines=\"$X\""
).split()  # fmt: skip
HOSTILE = (
    "-o w|-ow|-c sums|--check sums|-zr|-5c lfile|-1c link/key|-5c|-l|-z|-r lfile|--output=w|--output w|--outp=w|--files0-from=list|--files0=list|-T .|--compress-program=./evil"
    "|--comp=./evil|-S 1|-f list|-flist|-f .env|-X list|--exclude-from=list|-c list|--check list|-z|-0z|--pre"
    "=./evil|--pre ./evil|--search-zip|--hostname-bin=./evil|-l|-1l|--paginate|-i|-i.b|--in-place|-s 2020-01-01"
    "|--set=2020-01-01|--reference=/etc/hostname|-r /etc/hostname|--file=list|--random-source=list|-C|-m list"
    "|-R|-L|--follow|-delete|-exec ./evil ;|-fprint w|-fls w|-files0-from list|--rawfile x .env|-L .|--debug|-O"
    "|-1O|--open-files-in-pager=./evil|--ext-diff|--textconv|--no-index|--from-file=list|--to-file=list|-D a"
    "|--ignore-file=/etc/hostname|--ignore-revs-file list|--contents list|--show-signature|--edit|--unset x.y"
    "|-c core.pager=./evil|--exec-path=.|--git-dir=d|--paginate|-p|--help|--version|-W foo|--stdin|-v|-b|-y"
).split("|")  # fmt: skip
POOLS = {
    "sed": (
        "1p|$d|s/a/b/|s/a/b/g|s/a/b/w w|s/a/b/e|1e ./evil|w w|r /etc/hostname|R list|W w|/a/,/b/p|s,a,b,|y/a/b/"
        "|1!d|1~2p|s/[/]/x/w w|s/[a]w/x/|p;p|=|n;d|{p}|s/a\\/w w/b/|q|Q|F|e|/a/w w|s/a/b/;w w|s/x/\\n/|-n|-e|-ne|-E"
        "|-s|-i|--posix|--expression=p|--expression=w w|-z|-f list|-l 5|\\,a,w w|/a/I,+1p|s/a/b/2pw w|a|d/x|2{w w\n}"
    ),
    "find": (
        ".|d|e|link|-L|-H|-P|-name|-type|f|'*.txt'|-print|-print0|-ls|-exec|./evil|;|-delete|-fprint|w|-newer|a|-o"
        "|!|(|)|-prune|-maxdepth|1|-printf|%p|-size|+1|-samefile|../outside/key|-newermt|now|-user|root|-perm|644|,"
        "|-regex|.*|-okdir|-fls|-files0-from|list|-follow|-quit|-D|tree|-O3|-used|-fstype|-execdir|+|{}"
    ),
    "jq": (
        ".|.a|-r|-n|-rn|-c|env|$ENV|import \"a\" as b; .|include \"a\"; .|input|inputs|-f|list|-L|--arg|x|--slurpfile"
        "|json|-nr|input_filename|@sh|-e|--tab|--seq|--args|a|..|keys[]|debug|\"\\(env)\"|-s|-R|--indent|2|get_search_list"
    ),
    "awk": (
        "{print}|{print $1}|NR==1|/a/|{print > \"w\"}|{print | \"./evil\"}|BEGIN{system(\"./evil\")}|{getline < \"list\"}|-F|:"
        "|-F:|NR>1 {print $NF}|-f|list|-v|x=1|a|list|{print \"a\" \"b\"}|{print $1,$2}|-i|--include|@load|{print $1}>\"w\"|-l"
        "|/x/{print}|--|-W|exec|-E|{ print $1 ; }|NR<5|-o|--dump-variables=w|-d|-p"
    ),
    "date": "+%F|+%s|-u|-d|now|yesterday|-I|-Iseconds|-R|-f|list|-r|a|-s|--set=now|01010000|--date=@0|--rfc-3339=ns|-ud|-du",
    "test": (
        "-f|-d|-e|a|link/key|../outside/key|=|!=|-eq|1|'a[$(./evil)]'|-nt|-ot|-v|-n|-z|]|]]|!|-a|-o|-t|-R|=~|<|>|x|[|(|)"
    ),
    "printf": "%s|%d|%n|-v|x|'a[$(./evil)]'|--|a|\\n|%q|%b|%(%s)T|-1|'%s\\n'|\"$X\"|%*s|%5n|%ln",
    "printenv": "PATH|HOME|X|-0|--null|OPENAI_API_KEY|--|a=b|$X",
    "version": "--version|-V|-v|-c|./evil|-e|a|--help|--versio|-Vc|-VV|-",
    "ps": "aux|-ef|e|-e|-o|pid|auxe|eww|-p|1|--sort=pid|-C|bash|-eo|pid,args|E|-E|axo|-f|--forest|-M",
}  # fmt: skip
GIT_OPERANDS = (
    "HEAD HEAD~1 HEAD a d/x link/key lfile ../outside/key /etc/hostname HEAD:a main..HEAD list show "
    "get set x.y user.name core.pager new get-url origin '*' * -- . show @{0} blob 'a b' expire delete"
).split()  # fmt: skip
FRAMES = ("find . | xargs {}", "find d -type f | xargs -n1 {}", "rg -l a | xargs {}", "cat a | {}")
FRAMES += ("find . -exec {} \\{\\} +", "find d e -type f -exec {} \\{\\} ';' -print")
FRAMES += ("git -C . ls-files && {}", "git -C d status && {}")
FRAMES += ("git ls-files | xargs -0 {}", "grep -l a d/* | xargs {}", "find . | xargs -I@ {} @")
ALSO = {
    "egrep": {"grep"},
    "fgrep": {"grep"},
    "awk": {"mawk", "gawk"},
    "which": {"which.debianutils"},
}
SYSTEM = re.compile(
    r"/(?:lib(?:32|64)?|usr/lib(?:32|64)?|usr/share/(?:locale|zoneinfo|terminfo|awk|git-core)|etc/terminfo"
    r"|proc|sys/devices/system|sys/fs/cgroup|sys/kernel/mm|usr/local/lib|usr/local/share)(?:/.*)?"
    r"|/etc|/usr(?:/local)?|(?:/etc|/usr/lib)/os-release|/etc/(?:ld\.so\.\w+|localtime|passwd|group|nsswitch\.conf|mtab|gitconfig|hosts|host\.conf|resolv\.conf"
    r"|inputrc|default/\w+|ripgreprc)|/dev/(?:null|tty|zero|urandom|fd(?:/\d+)?|pts/\d+)|(?:/var)?/run(?:/utmp)?|/tmp"
    r"|/usr/s?bin/\w+|/bin/\w+|/dev/std\w+|pipe:.*"
)  # libraries, locales, zones, users, what the kernel tells, and programs that are scripts
PATTERNS = frozenset({".gitignore", ".ignore", ".rgignore", ".gitattributes", ".mailmap"})
SCRATCH = {"tac": r"/tmp/tac\w{6}\b", "sort": r"/tmp/sort\w{6}\b", "diff": r"/tmp/dif\w{6}\b"}


@dataclass(frozen=True)
class SessionSettings:
    """A workspace with files named like options beside it, one without, and what lies around."""

    top: Path

    @property
    def places(self) -> tuple[Path, Path]:
        return self.top / "work", self.top / "odd"

    def fill(self) -> None:
        """Make all of it."""
        for text in ("outside/key", "home/.ssh/id_rsa", "home/.bashrc"):
            (self.top / text).parent.mkdir(parents=True, exist_ok=True)
            (self.top / text).write_text("secret a\n")
        for place in self.places:
            self._fill(place)
        for name in ("-o", "-rf", "--output=w", "--files0-from=list", "-f.env", "-L", "-zc"):
            (self.places[1] / name).write_text("/etc/hostname\n")

    def _fill(self, place: Path) -> None:
        (place / "d").mkdir(parents=True)
        (place / "e").mkdir()
        for name in ("a", "b", "d/x", "d/y", "e/x", ".env", "n.txt"):
            (place / name).write_text("a b\nb a\n")
        (place / "b").write_text("b\nc\n")
        (place / "list").write_text("../outside/key\0/etc/hostname\0\n../outside/key\n")
        (place / "sums").write_text(f"{'0' * 32}  ../outside/key\n{'0' * 64}  /etc/hostname\n")
        (place / "z.gz").write_text("a\n")
        (place / "json").write_text('{"a": 1}\n')
        (place / "evil").write_text("#!/bin/sh\ntouch pwned\n")
        (place / "evil").chmod(0o755)
        if shutil.which("git"):
            run = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-C", str(place)]
            for step in (["init", "-qb", "main"], ["add", "."], ["commit", "-qm", "a"]):
                subprocess.run([*run, *step], check=True, capture_output=True)
        (place / "link").symlink_to("../outside")
        (place / "lfile").symlink_to("../outside/key")

    def permissions(self, *deny: str) -> Permissions:
        """The judge: no rules at all, or only these denials."""
        disk = LocalDisk(str(self.top / "home"))
        return Permissions.of(deny=deny, disk=disk, second=_second())


@cache
def _second() -> SecondOpinion:
    return SecondOpinion()


def known() -> list[str]:
    """The programs to try: those of the table that this machine has, and git's commands."""
    own = [name for name, one in programs().items() if one.reader != "known"]
    here = [name for name in own if name in BUILTINS or shutil.which(name)]
    return [*here, *(f"git {name}" for name in git_commands())]


def made_up(rng: random.Random, name: str) -> str:
    """A command with this program and a list of arguments."""
    found = git_command(name[4:]) if name.startswith("git ") else programs()[name]
    assert found is not None
    pool = POOLS.get(found.operands)
    words = [
        _word(rng, name, found, pool) for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5)))
    ]
    text = " ".join([name, *words])
    if name in {"[", "[["} and rng.random() < 0.9:
        text += " ]" if name == "[" else " ]]"
    return rng.choice(FRAMES).replace("{}", text) if rng.random() < 0.06 else text


def _word(rng: random.Random, name: str, found: Program, pool: str | None) -> str:
    kind = rng.random()
    if pool is not None and kind < 0.8:
        return _raw(rng.choice(pool.split("|")))
    if kind < 0.4 and found.takes:
        return _listed(rng, found)
    if kind < 0.75:
        return rng.choice(GIT_OPERANDS if name.startswith("git ") else OPERANDS)
    if kind < 0.85:
        return " ".join(map(_raw, rng.choice(HOSTILE).split(" ")))
    if kind < 0.92 and (named := helped(name)):
        return rng.choice(named) + rng.choice(("", "", "=w", " w", "w", " a"))
    letters = "".join(rng.choice(LETTERS) for _ in range(rng.choice((1, 2, 2, 3))))
    return f"-{letters}" + rng.choice(("", "", " a", " w", " list"))


def _raw(text: str) -> str:
    return text if text in OPERANDS or text.startswith(("'", '"$')) else shlex.quote(text)


def _listed(rng: random.Random, found: Program) -> str:
    """An option of the table, written in one of the ways that it can be written."""
    option = rng.choice(list(found.takes))
    if not found.takes[option] and rng.random() < 0.4:
        option = rng.choice(list(found.takes))
    value = rng.choice(FILES) if rng.random() < 0.3 else _raw(rng.choice(VALUES))
    takes = found.takes[option]
    if option == "-NUM":
        return f"-{rng.choice((1, 5, 20))}" + rng.choice(("", "", "", "c", "l", "O", "z", "f"))
    if option.startswith("--"):
        if rng.random() < 0.1:
            option = option[: rng.randint(3, len(option))]
        return option + (rng.choice(("=", "=", " ")) + value if takes else "")
    others = "".join(rng.choice([*found.takes]) for _ in range(rng.choice((0, 0, 1, 2))))
    joined = "-" + re.sub(r"-.*", "", others) + option
    return joined + (
        rng.choice(("", " ", " ")) + value if takes else rng.choice(("", "", "1", "5"))
    )


@cache
def helped(name: str) -> list[str]:
    """Options that a program's help names."""
    argv = [*name.split(), "-h" if name.startswith("git ") else "--help"]
    if name in BUILTINS or not shutil.which(argv[0]):
        return []
    done = subprocess.run(argv, capture_output=True, text=True, check=False, errors="replace")
    found = re.findall(r"(?<![\w-])(--?[A-Za-z0-9][\w-]*)", done.stdout + done.stderr)
    return sorted(set(found))


def fault(
    ground: SessionSettings, command: str, cwd: Path, deeds: Deeds, *, follows: bool = False
) -> str | None:
    """What an allowed command did that it must not; None where it only read what was judged.

    BusyBox ``follows`` links wherever it walks; such a link may lead out of what was judged.
    """
    words = {word for part in re.split(r"[|;&(]+", command) for word in part.split()}
    names = words | {one for word in words for one in ALSO.get(word, ())}
    for path in deeds.ran:
        if path.rpartition("/")[2] not in names or not path.startswith("/"):
            return f"{path} ran"
    for change in deeds.changed:
        if not is_tolerated(change, command, cwd):
            return change
    for path in sorted(deeds.opened):
        if wrong := _misread(ground, command, cwd, path, follows=follows):
            return wrong
    return None


def is_tolerated(change: str, command: str, cwd: Path) -> bool:
    """Null devices, private copies of what comes through a pipe, git's index brought up to date."""
    if "git " in command and f"{cwd}/.git/index" in change:
        return True
    if any(name in command and re.search(SCRATCH[name], change) for name in SCRATCH):
        return True
    return re.match(r"open\w* /dev/(?:null|tty) ", change) is not None


def _misread(
    ground: SessionSettings, command: str, cwd: Path, path: str, *, follows: bool
) -> str | None:
    home, place = ground.top / "home", Path(path)
    if (
        place.name in PATTERNS
        or ".git" in place.parts
        or place == ground.top
        or place in cwd.parents
    ):
        return None
    if path.startswith((f"{home}/.config/", f"{home}/.git", f"{home}/.jq")):
        return None
    if not place.is_relative_to(cwd):
        return None if SYSTEM.fullmatch(path) else f"{path} was opened"
    real = place.resolve()
    if not real.is_relative_to(cwd):
        if follows and re.search(r"grep -\S*[rRd]|--rec|--dir", command):
            return None
        return f"{path} was opened, which leads to {real}"
    if "git" in command or not place.is_file():
        return None  # what git shows of a file it has in its own store too
    denying = ground.permissions(f"Read(/{path})")
    allowed = denying.judge("Bash", {"command": command}, cwd=str(cwd)).decision == "allow"
    return f"{path} was opened, which a denial of it does not keep from it" if allowed else None


def allowed(
    ground: SessionSettings, rng: random.Random, names: Sequence[str], count: int
) -> list[tuple[str, Path]]:
    """What Crow lets through of so many lists for each of the programs."""
    judge = ground.permissions()
    found: dict[tuple[str, Path], None] = {}
    for name in names:
        for _ in range(count):
            command, cwd = made_up(rng, name), rng.choice(ground.places)
            if ASLEEP.search(command) and re.search(r"-\S*[fF]|sleep", command):
                continue
            made = judge.judge("Bash", {"command": command}, cwd=str(cwd))
            if made.decision == "allow":
                found[command, cwd] = None
    return list(found)
