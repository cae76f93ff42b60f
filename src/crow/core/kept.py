"""What many hold at the same time: JSON that stays as it is, and memory with typed keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, NoReturn, Protocol, TypeVar, cast

V = TypeVar("V")
IN_LIST = (
    "append clear extend insert pop remove reverse sort __delitem__ __iadd__ __imul__ __setitem__"
).split()
IN_DICT = "clear pop popitem setdefault update __delitem__ __ior__ __setitem__".split()
IN_SET = (
    "add clear difference_update discard intersection_update pop remove "
    "symmetric_difference_update update __iand__ __ior__ __isub__ __ixor__"
).split()


class KeptDict(dict[Any, Any]):
    """An object that stays as it is. Copies of it, deep ones too, are plain dicts and lists."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


class KeptList(list[Any]):
    """An array that stays as it is."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return list, (list(self),)


class OwnList(list[V]):
    """A list for all to see, which its owner alone changes."""

    __slots__ = ()

    def put(self, items: Iterable[V]) -> None:
        """Become these items."""
        super().__setitem__(slice(None), list(items))

    def add(self, item: V) -> None:
        """Put an item at the end."""
        super().append(item)

    def take(self) -> list[V]:
        """All items, which are gone afterwards."""
        taken = list(self)
        super().clear()
        return taken


class Inbox(OwnList[V]):
    """A list to which everybody may add, and from which its owner takes."""

    __slots__ = ()


class OwnSet(set[V]):
    """A set for all to see, which its owner alone changes."""

    __slots__ = ()

    def hold(self, item: V) -> None:
        """Put an item in."""
        super().add(item)

    def release(self, item: V) -> None:
        """Take an item out, if it is there."""
        super().discard(item)


class Shelf(dict[str, V]):
    """An object in which many keep something each: nobody takes all of it away."""

    __slots__ = ()


class Caching(Protocol):
    """A session, or what hooks and tools see of one."""

    @property
    def cache(self) -> dict[str, Any]: ...


class Key(str, Generic[V]):
    """A key of ``session.cache`` that knows the type of what is kept there.

    ``SEEN: Key[set[str]] = Key("seen")`` makes one, ``SEEN.get(ctx)`` uses it, with a session or a
    context. It is a string: whoever has only its name finds the same.
    """

    __slots__ = ()

    def get(self, whose: Caching) -> V | None:
        """What is kept; None where nothing is."""
        return whose.cache.get(self)

    def set(self, whose: Caching, value: V) -> V:
        """Keep a value, which is returned."""
        whose.cache[self] = value
        return value

    def setdefault(self, whose: Caching, default: V) -> V:
        """What is kept, or from now on the default."""
        return whose.cache.setdefault(self, default)

    def pop(self, whose: Caching) -> V | None:
        """What was kept, and is no longer."""
        return whose.cache.pop(self, None)


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError("this cannot be changed in place, many hold it: replace it by a copy")


def _refuse_own(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError("this cannot be changed by others, nor emptied: it is the loop's own")


for _cls, _names, _no in (
    (KeptDict, IN_DICT, _refuse),
    (KeptList, IN_LIST, _refuse),
    (OwnList, IN_LIST, _refuse_own),
    (OwnSet, IN_SET, _refuse_own),
    (Shelf, ["clear", "popitem"], _refuse_own),
):
    for _name in _names:
        setattr(_cls, _name, _no)
for _name in ("append", "extend", "insert", "__iadd__"):
    setattr(Inbox, _name, getattr(list, _name))


def kept(value: V) -> V:
    """A value that nobody can change in place, all the way down; itself where it is one."""
    kind = type(value)
    if kind is str or kind is KeptDict or kind is KeptList:
        return value
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return cast(V, KeptDict({key: kept(each) for key, each in items}))
    if isinstance(value, list):
        return cast(V, KeptList(map(kept, cast("list[Any]", value))))
    return value
