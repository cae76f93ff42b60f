"""A denial holds where git copies a repository, and where a line runs what it has just written."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from crow.extensions.permissions import LocalDisk, Permissions

SECRET = "SECRET-OF-THE-FILE"
RARE = ("make", "gawk")
"""Programs that not every machine has; what runs them is shown where they are."""
NAMED = ("git", "-c", "user.name=a", "-c", "user.email=a@example.com")

COPYING = """
git clone . @TMP@/copy
git clone --depth 1 file://@CWD@ @TMP@/copy
git clone -q -b main -- "$PWD" @TMP@/copy
git -C src clone .. @TMP@/copy
git clone --no-local . sub
git clone --bare .git @TMP@/copy && git -C @TMP@/copy show HEAD:.env
git worktree add @TMP@/copy
git worktree add --detach ../copy HEAD
git worktree add -f sub HEAD
git init -q @TMP@/copy && git -C @TMP@/copy pull -q @CWD@ main
git --work-tree=@TMP@/copy checkout -f HEAD -- .
git --work-tree @TMP@/copy restore -s HEAD -- .
git -c protocol.file.allow=always submodule add ./ sub
GIT_WORK_TREE=@TMP@/copy git checkout -f HEAD -- .
env GIT_WORK_TREE=@TMP@/copy git checkout -f HEAD -- .
export GIT_WORK_TREE=@TMP@/copy; git checkout -f HEAD -- .
git config core.worktree @TMP@/copy; git checkout -f HEAD -- .
git init -q --bare @TMP@/copy; git remote add o @TMP@/copy; git push -q o main; cd @TMP@/copy; git show main:.env
git init -q @TMP@/copy; git config remote.o.url @TMP@/copy; git push -q o HEAD:b; cd @TMP@/copy; git checkout b
git init -q @TMP@/copy; git -c remote.o.url=@TMP@/copy push -q o HEAD:b; cd @TMP@/copy; git checkout b
git init -q @TMP@/copy; git -c url.@TMP@/.insteadOf=gh: push -q gh:copy HEAD:b; cd @TMP@/copy; git checkout b
git init -q @TMP@/copy; git remote add o gh:x; git remote set-url o file://@TMP@/copy; git push -q o HEAD:b; cd @TMP@/copy; git checkout b
""".strip().splitlines()

RUNNING = """
printf 'cat .env' > x.sh; sh x.sh
printf 'cat .env' > x.sh && bash -e -o pipefail ./x.sh
printf 'cat .env' >> x.sh; chmod +x x.sh; PATH=$PATH sh x.sh
printf '#!/bin/sh\\ncat .env' > x && chmod +x x && ./x
printf '#!/bin/sh\\ncat .env' > x; chmod +x x; env A=1 nice ./x
printf 'cat .env' | tee x.sh > /dev/null; sh x.sh
tee x.sh > /dev/null <<< 'cat .env'; sh -x x.sh
cat > x.sh <<'EOF'; sh x.sh|cat .env|EOF
cat <<'EOF' > src/x.sh && cd src && sh x.sh|cat ../.env|EOF
(printf 'cat .env' > x.sh); { sh x.sh; }
F=x.sh; printf 'cat .env' > $F; sh $F
printf 'cat .env' > "$PWD/x.sh"; sh ./src/../x.sh
printf 'cat .env' > a; cp a x.sh; sh x.sh
printf 'cat .env' > a; mv a x.sh; sh x.sh
printf 'cat .env' > a; ln -s a x.sh; sh x.sh
printf 'cat .env' > a; mkdir d; mv a d; sh d/a
printf 'cat XX' > x.sh; sed -i 's/XX/.env/' x.sh; sh x.sh
printf 'cat .env' | dd of=x.sh; sh x.sh
bash -c "printf 'cat .e''nv' > x.sh"; sh x.sh
printf 'print(open(".env").read())' > x.py; python3 x.py
printf 'print(open(".env").read())' > x.py; python3 -W ignore -m x
printf 'print(open(".env").read())' > x.py; find . -name x.py -exec python3 {} +
printf 'print(open(".env").read())' > x.py; python3 -c 'import x'
printf 'print(open(".env").read())' > src/x.py; python3 -c 'import src.x as y'
printf 'print(open(".env").read())' > src/x.py; PYTHONPATH=src python3 -c '__import__("x")'
printf 'print(open(".env").read())' > conftest.py; python3 -m pytest -s
printf 'console.log(""+require("fs").readFileSync(".env"))' > x.js; node -r ./x.js -e 1
printf 'console.log(""+require("fs").readFileSync(".env"))' > x.js; node -e 'require("./x")'
printf 'print `cat .env`' > x.pl; perl -e 'require "./x.pl"'
printf 'BEGIN{while((getline l < ".env")>0)print l}' > x.awk; gawk -i ./x.awk 'BEGIN{}'
printf 'import x' > a.py; cp a.py b.py; printf 'print(open(".env").read())' > x.py; python3 -c 'import b'
printf 'cat .env' > x.sh; printf '. ./x.sh' > src/a; bash src/a
printf 'a:\\n\\tcat .env' > Makefile; make
printf 'a:\\n\\tcat .env' > y.mk; make -f y.mk
for i in 1 2; do if [ -e x.sh ]; then sh x.sh; fi; printf 'cat .env' > x.sh; done
""".strip().splitlines()

HARMLESS = """
git clone https://example.com/a.git
git clone git@example.com:a/b.git src/b
git clone ../other @TMP@/copy
git fetch origin main
git pull
git push origin feature/a
git push -u origin HEAD
git submodule update --init
git worktree list
git remote add up https://example.com/a.git
echo hi > x.txt; cat x.txt
echo '{}' > in.json; python3 tool.py in.json
python3 tool.py > out.txt; tail out.txt
make > log 2>&1; tail -5 log
sh run.sh > "$LOG"
chmod +x run.sh && ./run.sh
touch a && sh run.sh
npm run build > log 2>&1
echo a > f; sed -n 1p f; awk '{print}' f
printf 'text' > message; git commit -F message
sh run.sh 2>/dev/null | tee log
echo 'def f(): pass' > x.py; grep -n def x.py; wc -l x.py
echo '{}' > in.json; python3 -c 'import json; print(json.load(open("in.json")))'
echo 'a = 1' > x.py; awk '{print}' x.py; sed -n 1p x.py
GIT_PAGER=cat GIT_TRACE=1 git push
GIT_AUTHOR_DATE=2020-01-01 git commit -m a
git -c user.name=a -c color.ui=false commit -m a
git config --get remote.origin.url
git config remote.origin.url https://example.com/a.git
git config user.email a@example.com
git remote set-url origin git@example.com:a/b.git
git remote -v
""".strip().splitlines()


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose secret is tracked, and a neighbour without one."""
    tmp_path = tmp_path_factory.mktemp("original")
    for name, text in (("work/.env", SECRET), ("work/src/a", "a"), ("other/a", "a")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for name in ("work", "other"):
        for command in (
            ["init", "-q", "-b", "main", "--template="],
            ["add", "-A"],
            ["commit", "-qm", "a"],
        ):
            subprocess.run([*NAMED, *command], cwd=tmp_path / name, check=True)
    return tmp_path


@pytest.fixture
def project(original: Path, tmp_path: Path) -> Path:
    """One of its own, beside an empty directory."""
    shutil.copytree(original, tmp_path / "here")
    (tmp_path / "here" / "copy").mkdir()
    return tmp_path / "here" / "work"


def decided(project: Path, command: str) -> str:
    disk = LocalDisk(str(project.parent / "home"), "/usr/local/bin:/usr/bin:/bin")
    permissions = Permissions.of(allow=["Bash"], deny=["Read(./.env)"], disk=disk)
    return permissions.judge("Bash", {"command": command}, cwd=str(project)).decision


def filled(project: Path, command: str) -> str:
    lines = (
        command.replace("|cat", "\ncat").replace("|EOF", "\nEOF") if "<<'" in command else command
    )
    return lines.replace("@TMP@", str(project.parent)).replace("@CWD@", str(project))


def shown(project: Path, command: str) -> bool:
    """Whether the command, run for real, prints the secret or leaves it elsewhere."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": os.environ["PATH"], "HOME": str(project.parent), "GIT_CONFIG_COUNT": "0"},
    )
    left = (
        path
        for path in project.parent.rglob("*")
        if path.is_file() and path != project / ".env" and ".git" not in path.parts
    )
    return SECRET in done.stdout or any(SECRET in path.read_text(errors="replace") for path in left)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize("command", [*COPYING, *RUNNING])
@pytest.mark.variants(20)
def test_what_gets_at_a_denied_file_is_asked_about(project: Path, command: str) -> None:
    command = filled(project, command)
    assert decided(project, command) != "allow"
    if all(shutil.which(each) for each in RARE if each in command):
        assert shown(project, command)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize("command", HARMLESS)
def test_what_does_not_is_not(project: Path, command: str) -> None:
    assert decided(project, filled(project, command)) == "allow"
