"""The loader of extensions: from files and modules, and what in them is to be used."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from crow.core.agent import Agent
from crow.core.catalog import is_tool
from crow.core.errors import CrowError, ExtensionError, hint_of, raised_at
from crow.core.extensions import AgentExtension, LifespanExtension
from crow.core.hooks.discovery import MARK, misnamed
from crow.core.support.frozen import frozen
from crow.core.support.validation import implementing, implements
from crow.entry_points import GROUP, GROUPS, entry_points
from crow.project.files import Stamp, stamp

if TYPE_CHECKING:
    from crow.project.imports import Seal

Kind: TypeAlias = Literal["user", "project", "named"]
PLACED = re.compile(r"\(\S+:\d+\)")
OWN_NAME = "crow_extension_"
"""What the modules of single files begin with."""


def in_a_line(error: BaseException) -> str:
    """An error in one line, with the file and line of others' code where it was raised."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{type(error).__name__}: {error.msg} ({error.filename}:{error.lineno})"
    told = text = " ".join(f"{error}{hint_of(error)}".split())
    if not isinstance(error, CrowError):
        told = f"{type(error).__name__}: {text}" if text else type(error).__name__
    place = raised_at(error.__cause__) or raised_at(error)
    return f"{told} ({place})" if place and not PLACED.search(told) else told


def find(spec: str) -> tuple[str, str, Any]:
    """Name, source and thing of ``FILE.py``, ``module``, ``module:Name`` or an entry point."""
    path = Path(os.path.expanduser(spec))
    if path.suffix == ".py" or path.is_file():
        return path.stem, str(path), loaded(spec, lambda: load_file(path))
    if (path / "pyproject.toml").is_file():
        return loaded(spec, lambda: of_folder(path))
    module, _, attribute = spec.partition(":")
    for point in entry_points():
        if point.name == spec and not point.own:
            return spec, point.value, loaded(spec, point.load)
    thing = loaded(spec, lambda: import_beside(module.replace("-", "_")))
    if not attribute:
        return module.rpartition(".")[2], spec, thing
    if not hasattr(thing, attribute):
        raise ExtensionError(f"the extension {spec} is broken: {module} has no {attribute!r}")
    return module.rpartition(".")[2], spec, getattr(thing, attribute)


def of_folder(folder: Path) -> tuple[str, str, Any]:
    """Name, source and thing of a package that is not installed, by its own ``pyproject.toml``."""
    import tomllib

    told = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    groups: dict[str, dict[str, str]] = told["project"].get("entry-points", {})
    points = [each for name in GROUPS for each in groups.get(name, {}).items()]
    if len(points) != 1:
        told = f"its pyproject.toml names {len(points)} in {GROUP}, not one"
        names = ", ".join(name for name, _ in points)
        hint = f": install it, and use each by its name ({names})" if names else ""
        raise ExtensionError(f"{told}{hint}")
    [(name, value)] = points
    inside = "src" if (folder / "src").is_dir() else ""
    place = str(folder.absolute() / inside)
    if place not in sys.path:
        sys.path.insert(0, place)
    seal(folder, inside)
    module, _, attribute = value.partition(":")
    thing: Any = importlib.import_module(module)
    return name, value, getattr(thing, attribute) if attribute else thing


def seal(folder: Path, inside: str) -> None:
    """Have what is imported from a folder compiled anew, whatever caches lie there."""
    from crow.project.imports import Seal

    Seal(folder, always=[inside]).install()


def loaded(spec: str, do: Callable[[], Any]) -> Any:
    """What `do` returns. Raises `ExtensionError` that names the spec where it fails."""
    try:
        return do()
    except FileNotFoundError:
        raise ExtensionError(
            f"the extension {spec} does not exist: there is no such file"
        ) from None
    except ModuleNotFoundError as error:
        if not f"{spec.partition(':')[0].replace('-', '_')}.".startswith(f"{error.name}."):
            raise ExtensionError(f"the extension {spec} is broken: {in_a_line(error)}") from error
        raise ExtensionError(
            f"the extension {spec} does not exist: {error} (a file.py, a module or module:Name)"
        ) from None
    except (Exception, SystemExit) as error:
        raise ExtensionError(f"the extension {spec} is broken: {in_a_line(error)}") from error


def files_in(folder: Path) -> list[Path]:
    """The files of a folder that are extensions: no helpers (``_name.py``) and no tests."""
    try:
        paths = sorted(folder.iterdir())  # `glob` compiles an expression, at every start
    except OSError:
        return []
    return [path for path in paths if path.suffix == ".py" and is_extension(path)]


def is_extension(path: Path) -> bool:
    """False for a file beside extensions that is a helper or a test."""
    return not path.stem.startswith(("_", "test_")) and path.stem != "conftest"


def load_file(path: Path, seal: Seal | None = None) -> ModuleType:
    """A Python file as a module of its own; what it raises is raised.

    It is compiled anew, and so is what it imports from its folder. A ``seal`` says what may be
    imported.
    """
    from crow.project.imports import Seal

    return (seal or Seal(path.absolute().parent)).load(path, module_name(path))


def load_text(path: Path, text: str) -> ModuleType:
    """A text as the module of a file, whatever that says by now; what it raises is raised."""
    name = module_name(path)
    before = sys.modules.get(name)
    module = sys.modules[name] = ModuleType(name)
    module.__file__ = str(path)
    try:
        exec(compile(text, str(path), "exec", dont_inherit=True), vars(module))  # noqa: S102
    except BaseException:
        del sys.modules[name]
        sys.modules.update({} if before is None else {name: before})
        raise
    return module


def module_name(path: Path) -> str:
    """What the module of a single file is called."""
    return f"{OWN_NAME}{path.stem}_{abs(hash(str(path.absolute()))):x}"


def import_beside(name: str) -> ModuleType:
    """A module that is installed, or lies in the current directory."""
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        from crow.project.imports import Seal

        Seal(Path(here)).install()
        sys.path.append(here)
    try:
        return importlib.import_module(name)
    finally:
        if added:
            sys.path.remove(here)


def things(thing: Any) -> list[Any]:
    """What to use of a thing: of a module itself, if it hangs anything, else its classes and tools.

    Names with an underscore are its own affair; where it has an ``__all__``, so is what that does
    not name. Raises `ExtensionError` for a module with nothing.
    """
    if not isinstance(thing, ModuleType):
        return [thing]
    if hangs(thing):
        return [thing]
    members = [value for name, value in vars(thing).items() if _is_offered(name, thing)]
    own = [each for each in members if _is_own(each, thing)]
    classes = [each for each in own if hangs(each)]
    if not classes:  # beside what hangs, a lifespan may be a helper's
        if implements(thing, LifespanExtension):
            return [thing]
        classes = implementing(own, LifespanExtension)
    found: list[Any] = list(dict.fromkeys(classes))
    if tools := [each for each in members if is_tool(each)]:
        found.append(ToolBox(tools))
    if not found:
        from crow.core.hooks.registry import HookRegistry

        listed = " in its __all__" if hasattr(thing, "__all__") else ""
        raise ExtensionError(
            "it holds no extension: no init_agent, no tool, nothing named like an event"
            f"{listed}{misnamed([thing, *own], HookRegistry().names)}"
        )
    return found


def _is_offered(name: str, module: ModuleType) -> bool:
    """Whether a name of a module is meant for others."""
    listed = getattr(module, "__all__", None)
    return not name.startswith("_") if listed is None else name in listed


class ToolBox:
    """The tools of a file as an extension."""

    def __init__(self, tools: list[Any]) -> None:
        self.tools = tools

    def init_agent(self, agent: Agent) -> None:
        """Add the tools."""
        for tool in self.tools:
            agent.add_tool(tool)


def _is_own(thing: Any, module: ModuleType) -> bool:
    return inspect.isclass(thing) and thing.__module__ == module.__name__


def hangs(thing: Any) -> bool:
    """True for a module or class that hangs something on an agent."""
    from crow.core.hooks.agent_hook import AgentHook
    from crow.core.hooks.registry import HookRegistry

    if implements(thing, AgentExtension):
        return True
    events = HookRegistry().names
    for name in dir(thing):
        member = inspect.getattr_static(thing, name)
        if hasattr(member, MARK):
            return True
        if inspect.isclass(member):  # such as an imported Stop
            continue
        if name in events and member is not AgentHook.__dict__.get(name):
            return True
    return False


@frozen
class Source:
    """The source of an extension: its file, or the folder of its package.

    ``kind`` says whose it is: the user's, the project's, or ``named`` on the command line, as
    ``spec``.
    """

    path: str
    kind: Kind
    spec: str = ""

    @property
    def folder(self) -> str:
        """Where what it imports beside itself lies."""
        return str(Path(self.path).parent) if self.path.endswith(".py") else self.path


class Sources:
    """The sources of what was loaded. Looking for changes is a ``stat`` of each file.

    It ``owes`` another look where something that has changed could not be used yet. ``texts`` are
    those of extensions that are in use as somebody was shown them, by name.
    """

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._stamps: dict[Source, dict[str, Stamp | None]] = {}
        self._said: dict[Source, str] = {}
        self._modules: dict[Source, set[str]] = {}
        self._folders: dict[str, Stamp | None] = {}
        self._offered: dict[Source, str] = {}
        self.owes = False

    def note(self, source: Source, imported: Iterable[str]) -> None:
        """It was loaded just now, and these modules for it."""
        inside = {name for name in imported if _file(name).startswith(f"{source.folder}/")}
        self._modules[source] = {name for name in inside if not name.startswith(OWN_NAME)}
        self.see(source)

    def see(self, source: Source) -> None:
        """Take its files for known, as they are now."""
        files = {source.path, *map(_file, self.modules(source))} - {""}
        files = {path for path in files if path.endswith(".py")}
        self._stamps[source] = {path: stamp(path) for path in sorted(files)}
        self._said[source] = self._content(source)

    def watch(self, folder: str) -> None:
        """Know of new files in a folder, from now on."""
        self._folders[folder] = stamp(folder)

    def forget(self, source: Source) -> None:
        """It is not in use any more."""
        for table in (self._stamps, self._said, self._modules, self._offered):
            table.pop(source, None)

    def of(self, kind: Kind) -> list[Source]:
        """Those of a kind."""
        return [source for source in self._stamps if source.kind == kind]

    def modules(self, source: Source) -> set[str]:
        """What it has imported from its folder, with what others there have."""
        beside = [each for each in self._modules if each.folder == source.folder]
        return set[str]().union(*(self._modules[each] for each in beside))

    @property
    def touched(self) -> bool:
        """True where a look at what is in the files is worth its while."""
        files = (each for stamps in self._stamps.values() for each in stamps.items())
        every = (*files, *self._folders.items())
        return self.owes or any(stamp(path) != known for path, known in every)

    def changed(self) -> Iterator[Source]:
        """Those whose files say something else than what was loaded."""
        for source in list(self._stamps):
            if not Path(source.path).exists():
                continue
            if self._content(source) != self._said[source]:
                yield source

    def seen(self) -> None:
        """Have looked at everything as it is now."""
        for stamps in self._stamps.values():
            stamps.update({path: stamp(path) for path in stamps})
        for folder in self._folders:
            self.watch(folder)

    def is_news(self, source: Source) -> bool:
        """True once for each thing that its files say."""
        now = self._content(source)
        was, self._offered[source] = self._offered.get(source), now
        return now != was

    def _content(self, source: Source) -> str:
        digest = hashlib.sha256()
        for path in self._stamps[source]:
            try:
                digest.update(Path(path).read_bytes())
            except OSError:
                digest.update(b"\0gone")
        return digest.hexdigest()


def _file(name: str) -> str:
    return getattr(sys.modules.get(name), "__file__", None) or ""
