"""Packages with extensions: put beside Crow, taken away and renewed, by whoever put Crow there.

``uv tool``, ``pipx``, uv and pip each have their own way to have a package in an environment, and
their own word for what is in it: what is done behind their back is gone with their next upgrade.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import parse_qs, unquote, urlsplit

from crow.cli.installation import PACKAGE, which
from crow.cli.output import Output
from crow.cli.parser import UsageError, no_such
from crow.core.support.frozen import frozen
from crow.entry_points import NORMAL, OWN, entry_points

Sort: TypeAlias = Literal["uv tool", "pipx", "uv", "pip"]
Argv: TypeAlias = list[str]
GIT = re.compile(
    r"git@[^:/\s]+:\S+|(?:https?|ssh|file)://\S+\.git(?:@\S+)?|https://git(?:hub|lab)\.com/\S+"
)
"""What is taken for a repository."""


@frozen
class Package:
    """A distribution with extensions: its ``origin`` is what it was installed from, if no index."""

    name: str
    version: str
    origin: str = ""
    editable: bool = False

    @property
    def spec(self) -> str:
        """What is asked for to have its latest version."""
        return self.origin or self.name


@frozen
class Environment:
    """The environment that Crow is installed in, and by whom."""

    sort: Sort
    prefix: Path

    def add(self, spec: str, *, editable: bool) -> Argv:
        """How to put a package there."""
        flags = ["--editable"] if editable else []
        match self.sort:
            case "uv tool":
                how = "--with-editable" if editable else "--with"
                return [*self._uv_tool(""), how, spec]
            case "pipx":
                return [program("pipx"), "inject", *flags, PACKAGE, spec]
            case "uv" | "pip":
                return [*self._pip("install"), *_itself(), *flags, spec]

    def remove(self, package: Package) -> Argv:
        """How to take a package away."""
        match self.sort:
            case "uv tool":
                return self._uv_tool(package.name)
            case "pipx":
                return [program("pipx"), "uninject", PACKAGE, package.name]
            case "uv":
                return [*self._pip("uninstall"), package.name]
            case "pip":
                return [*self._pip("uninstall"), "--yes", package.name]

    def update(self, package: Package) -> Argv:
        """How to have the latest version of a package."""
        flags = ["--editable"] if package.editable else []
        match self.sort:
            case "uv tool":
                latest = ["--upgrade-package", package.name, "--reinstall-package", package.name]
                return [*self._uv_tool(""), *latest]
            case "pipx":
                how = ["install", "--quiet", "--upgrade", *flags, package.spec]
                return [program("pipx"), "runpip", PACKAGE, *how]
            case "uv":  # which takes a folder of the same version for the same package
                fresh = ["--upgrade", "--reinstall-package", package.name]
                return [*self._pip("install"), *fresh, *_itself(), *flags, package.spec]
            case "pip":
                return [*self._pip("install"), "--upgrade", *_itself(), *flags, package.spec]

    def renew(self, package: Package) -> Argv | None:
        """How to have it anew where pip keeps what has the same version; None where that is done.

        What it depends on is there by then.
        """
        fresh = ["--force-reinstall", "--no-deps", package.spec]
        if not package.origin or package.editable:
            return None
        match self.sort:
            case "pipx":
                return [program("pipx"), "runpip", PACKAGE, "install", "--quiet", *fresh]
            case "pip":
                return [*self._pip("install"), *fresh]
            case _:
                return None

    def _pip(self, verb: str) -> Argv:
        if self.sort == "uv":
            return [program("uv"), "pip", verb, "--quiet", "--python", sys.executable]
        return [sys.executable, "-m", "pip", verb, "--quiet", "--disable-pip-version-check"]

    def _uv_tool(self, without: str) -> Argv:
        """The tool as its receipt says, with another list of what is beside it."""
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        argv = [program("uv"), "tool", "install", "--quiet", "--force", "--python", python]
        receipt = read_toml(self.prefix / "uv-receipt.toml")
        for kept in receipt["tool"]["requirements"]:
            if same(kept["name"], PACKAGE):
                argv += ["--editable", kept["editable"]] if "editable" in kept else [written(kept)]
            elif not same(kept["name"], without):
                how = "--with-editable" if "editable" in kept else "--with"
                argv += [how, kept.get("editable") or written(kept)]
        return argv


def environment() -> Environment:
    """Where this Crow is installed. Raises `UsageError` where nothing can be put beside it."""
    prefix = Path(sys.prefix)
    if "archive-v0" in prefix.parts:
        raise UsageError(
            "uvx runs Crow from a cache that it throws away: uvx --with NAME crow-acp for once, "
            "or uv tool install crow-acp, and then crow ext add"
        )
    if (prefix / "uv-receipt.toml").is_file():
        return Environment("uv tool", prefix)
    if (prefix / "pipx_metadata.json").is_file():
        return Environment("pipx", prefix)
    if (prefix.parent / "uv.lock").is_file():
        raise UsageError(
            f"Crow is here for the project {prefix.parent}: uv add NAME puts a package beside it, "
            "uv remove NAME takes one away, uv lock --upgrade-package NAME updates it"
        )
    if (
        sys.prefix == sys.base_prefix
        and Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").is_file()
    ):
        raise UsageError(
            "this Python is the system's, which lets nobody but the system install packages: "
            "uv tool install crow-acp (or pipx install crow-acp), and then crow ext add"
        )
    return Environment("pip" if find_spec("pip") else "uv", prefix)


def program(name: str) -> str:
    """Where a program is. Raises `UsageError` without it."""
    found = which(name)
    if found is None:
        raise UsageError(
            f"Crow was installed with {name}, and {name} is not on the PATH: put its folder there, "
            f"or install the package into {sys.prefix} with what you have"
        )
    return found


def _itself() -> Argv:
    """Crow as it is: whoever needs another one is refused by the installer."""
    return [f"{PACKAGE}=={distribution(PACKAGE).version}"]


def read_toml(path: Path) -> dict[str, Any]:
    """A file of TOML."""
    import tomllib

    return tomllib.loads(path.read_text("utf-8"))


def written(kept: Mapping[str, Any]) -> str:
    """A requirement of a receipt of uv's, as it is written for a command."""
    extras = f"[{','.join(kept['extras'])}]" if kept.get("extras") else ""
    name = f"{kept['name']}{extras}"
    if where := kept.get("path") or kept.get("directory"):
        return f"{name} @ {Path(where).as_uri()}"
    if url := kept.get("url"):
        return f"{name} @ {url}"
    if git := kept.get("git"):
        parts = urlsplit(str(git))
        asked = parse_qs(parts.query)
        rev = next((f"@{asked[key][0]}" for key in ("rev", "tag", "branch") if key in asked), "")
        inside = f"#subdirectory={asked['subdirectory'][0]}" if "subdirectory" in asked else ""
        return f"{name} @ git+{parts._replace(query='', fragment='').geturl()}{rev}{inside}"
    return f"{name}{kept.get('specifier', '')}"


def same(name: str, other: str) -> bool:
    """True for two spellings of one package."""
    return name.lower().translate(NORMAL) == other.lower().translate(NORMAL)


def packages() -> dict[str, Package]:
    """What brings extensions and does not come with Crow, by the names of both."""
    found: dict[str, Package] = {}
    for point in entry_points():
        if not same(point.package, OWN):
            package = found.get(point.package) or installed(point.package)
            found |= {point.package: package, point.name: package}
    return found


def installed(name: str) -> Package:
    """A package as its own files describe it."""
    try:
        known = distribution(name)
    except PackageNotFoundError:
        return Package(name, "")
    told: dict[str, Any] = json.loads(known.read_text("direct_url.json") or "{}")
    url = str(told.get("url", ""))
    if "vcs_info" in told:
        rev = told["vcs_info"].get("requested_revision")
        url = f"{told['vcs_info']['vcs']}+{url}{f'@{rev}' if rev else ''}"
    editable = bool(told.get("dir_info", {}).get("editable"))
    return Package(name, known.version, url.removeprefix("file://"), editable)


def asked_for(text: str) -> str:
    """What a person means, for an installer: a folder or a wheel, a repository, or a name."""
    path = Path(os.path.expanduser(text))
    if path.suffix == ".py":
        raise UsageError(f"one file needs no package: put {path.name} into ~/.crow/extensions")
    if path.is_dir() and not any(
        (path / name).is_file() for name in ("pyproject.toml", "setup.py")
    ):
        raise UsageError(f"{text} is no package: there is no pyproject.toml (crow ext new)")
    if path.exists():
        return str(path.absolute())
    if GIT.fullmatch(text) or is_repository(text):
        start, colon, rest = text.partition(":")
        return f"git+ssh://{start}/{rest}" if colon and text.startswith("git@") else f"git+{text}"
    if "/" in text and "://" not in text:
        raise UsageError(f"there is no {text}")
    return text


def is_repository(url: str) -> bool:
    """True for the address of a folder here that git made."""
    parts = urlsplit(url)
    folder = Path(unquote(parts.path.rpartition("@")[0] or parts.path))
    return parts.scheme == "file" and ((folder / ".git").exists() or (folder / "HEAD").is_file())


def add(options: argparse.Namespace, out: Output) -> int:
    """Put a package beside Crow, and say what it brings; 1 where that is nothing, or broken."""
    spec = asked_for(options.name)
    before = listed()
    if not run(environment().add(spec, editable=options.editable), out):
        return 1
    now = listed()
    new = [each for name, each in now.items() if name not in before]
    known = {name for name, each in packages().items() if spec in (each.spec, each.name)}
    told = new or [each for name, each in now.items() if name in known]  # it was there
    for each in told:
        out.line(f"{each['state']}  {each['name']}  of {each['source']}")
        if each["error"]:
            out.error(each["error"])
    if not told:
        out.error(f"{options.name} brings no extension: nothing in it is named in crow.extensions")
    return 0 if told and all(not each["error"] for each in told) else 1


def remove(options: argparse.Namespace, out: Output) -> int:
    """Take the package of an extension away."""
    package = find_package(options.name)
    if not run(environment().remove(package), out):
        return 1
    if version_of(package.name):
        out.error(f"{package.name} is still there: another package needs it")
        return 1
    out.line(f"{package.name} is gone")
    return 0


def update(options: argparse.Namespace, out: Output) -> int:
    """Have the latest version of one package, or of each; 1 where that fails."""
    known = packages()
    chosen = (
        [find_package(options.name)]
        if options.name
        else {p.name: p for p in known.values()}.values()
    )
    if not chosen:
        out.note("no package has brought an extension")
    where, failed = environment(), 0
    for package in chosen:
        was, again = version_of(package.name), where.renew(package)
        if not run(where.update(package), out) or (again and not run(again, out)):
            failed = 1
            continue
        now = version_of(package.name)
        changed = f"{was} -> {now}" if now != was else f"{now}, as before"
        out.line(f"{package.name}  {changed}")
    return failed


def find_package(name: str) -> Package:
    """The package that is meant. Raises `UsageError` with the nearest one, or with what it is."""
    known = packages()
    for each in known:
        if same(each, name):
            return known[each]
    if any(point.name == name for point in entry_points()):
        raise UsageError(f'{name} comes with Crow: "disabled": ["{name}"] in the settings ends it')
    from crow.app.composer import FOLDER

    for folder in (Path.cwd() / FOLDER, Path.home() / FOLDER):
        for path in (folder / name, folder / f"{name}.py"):
            if path.exists():
                raise UsageError(f"{name} is no package but {path}: delete that, and it is gone")
    raise UsageError(f"{no_such('package', name, known)} (crow ext list)")


def run(argv: Argv, out: Output) -> bool:
    """Run an installer, and show what; False where it fails, which it says itself."""
    out.note(f"$ {' '.join([Path(argv[0]).name, *argv[1:]])}")
    return subprocess.run(argv, check=False).returncode == 0


def listed() -> dict[str, dict[str, Any]]:
    """What is there, as a new process of Crow sees it."""
    return {each["name"]: each for each in _asked("ext", "list", "--json") if "hooks" in each}


VERSION = """
import json, sys
from importlib.metadata import distribution
found = distribution(sys.argv[1])
commit = json.loads(found.read_text("direct_url.json") or "{}").get("vcs_info", {}).get("commit_id")
print(found.version, *(["of", commit[:7]] if commit else []))
"""


def version_of(package: str) -> str:
    """Version and commit of a package, as a new process sees it; empty where there is none."""
    argv = [sys.executable, "-P", "-c", VERSION, package]
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip()


def _asked(*arguments: str) -> Iterator[dict[str, Any]]:
    argv = [sys.executable, "-P", "-m", "crow", *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        yield json.loads(line)
