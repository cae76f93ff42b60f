"""Imports of extensions: from source, never from a cache, and of a project only what was trusted.

A ``.pyc`` beside a harmless source says what it likes, and Python runs it. So an extension, and
what it imports from its own folder, is compiled anew; in a project it is made of the very bytes
that trust was given for.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Mapping
from functools import partial
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
    SourcelessFileLoader,
)
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from crow.core.errors import ExtensionError

Contents = Mapping[str, str]
"""The hashes (SHA-256) of the files that may be imported, by path."""


class Seal:
    """A seal on a folder: everything may be imported, or what ``contents`` has.

    ``always`` are folders in it that it is for even where the interpreter looks by itself, as it
    does in a venv of the project's.
    """

    def __init__(
        self, root: Path, contents: Contents | None = None, always: Iterable[str] = ()
    ) -> None:
        self.root = str(root.absolute())
        self.always = [f"{self.root}/{name}" for name in always]
        self.contents = contents and {_spelled(path): text for path, text in contents.items()}
        self.others: list[str] = []

    def install(self) -> None:
        """Be asked before Python's own finders, from the next import on."""
        self.others = [path for path in sys.path if path and _is_in(path, self.root)]
        hooks = [each for each in sys.path_hooks if getattr(each, "root", "") != self.root]
        sys.path_hooks[:] = [self, *hooks]
        for path in [path for path in sys.path_importer_cache if self.covers(path)]:
            del sys.path_importer_cache[path]

    def covers(self, path: str) -> bool:
        """Whether a place on the path of imports lies in the folder."""
        if any(_is_in(path, folder) for folder in self.always):
            return True
        return _is_in(path, self.root) and not any(_is_in(path, other) for other in self.others)

    def __call__(self, path: str) -> FileFinder:
        """A finder for a place; called by Python. Raises ``ImportError`` for those of others."""
        if not self.covers(path):
            raise ImportError
        if not os.path.isdir(path):  # noqa: PTH112
            return self._for_archive(path)
        loaders: list[tuple[Any, list[str]]] = [
            (partial(Native, self), EXTENSION_SUFFIXES),
            (partial(Source, self), SOURCE_SUFFIXES),
            (partial(Compiled, self), BYTECODE_SUFFIXES),
        ]
        return FileFinder(path, *loaders)

    def _for_archive(self, path: str) -> FileFinder:
        """Leave an archive to Python, which raises ``ImportError``; find nothing in another one."""
        try:
            self.check(path)
        except (ImportError, OSError):
            return FileFinder(path)
        raise ImportError

    def check(self, path: str) -> None:
        """Raise ``ImportError`` for a file that is not what was trusted, ``OSError``."""
        if self.contents is not None:
            self.checked(path, Path(path).read_bytes())

    def checked(self, path: str, data: bytes) -> bytes:
        """A file's content again. Raises ``ImportError`` where it is not what was trusted."""
        if self.contents is None:
            return data
        known = self.contents.get(_spelled(path))
        if known is None:
            raise ImportError(f"{path} is none of the files that this project is trusted for")
        if known != hashlib.sha256(data).hexdigest():
            raise ImportError(f"{path} has changed since this project was trusted")
        return data

    def load(self, path: Path, name: str) -> ModuleType:
        """A Python file as a module of this name; what it raises is raised."""
        spec = spec_from_file_location(name, path, loader=Source(self, name, str(path)))
        if spec is None or spec.loader is None:
            raise ExtensionError(f"{path} is no Python file")
        self.install()
        module = module_from_spec(spec)
        sys.modules[name] = module
        writes = sys.dont_write_bytecode
        try:
            sys.dont_write_bytecode = True
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        finally:
            sys.dont_write_bytecode = writes
        return module


class Source(SourceFileLoader):
    """Compiles a file each time; a cache is neither read nor written."""

    def __init__(self, seal: Seal, fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self.seal = seal

    def path_stats(self, path: str) -> Mapping[str, float]:
        """Python takes no cache for a source whose time is not known."""
        raise OSError("a cache is not used")

    def get_data(self, path: str) -> bytes:
        """The content, where it may be imported."""
        return self.seal.checked(path, super().get_data(path))


class Compiled(SourcelessFileLoader):
    """Loads a ``.pyc`` that has no source, where it may be imported."""

    def __init__(self, seal: Seal, fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self.seal = seal

    def get_data(self, path: str) -> bytes:
        """The content, where it may be imported."""
        return self.seal.checked(path, super().get_data(path))


class Native(ExtensionFileLoader):
    """Loads a native module, where it may be imported."""

    def __init__(self, seal: Seal, fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self.seal = seal

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Load the library."""
        self.seal.check(self.path)
        return super().create_module(spec)


def _spelled(path: str) -> str:
    """A path, however its folder is written; the file itself may be a link."""
    folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100
    return os.path.join(os.path.realpath(folder), name)  # noqa: PTH118


def _is_in(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it, as it is written or as its links lead."""
    written, real = os.path.abspath(path), os.path.realpath(path)  # noqa: PTH100
    return any(
        Path(one).is_relative_to(other)
        for one in {written, real}
        for other in {folder, os.path.realpath(folder)}
    )
