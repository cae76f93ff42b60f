"""JSON that many hold at the same time, so that nobody may change it in place."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar, cast

V = TypeVar("V")
IN_LIST = (
    "append clear extend insert pop remove reverse sort __delitem__ __iadd__ __imul__ __setitem__"
).split()
IN_DICT = "clear pop popitem setdefault update __delitem__ __ior__ __setitem__".split()


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


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError("this cannot be changed in place, many hold it: replace it by a copy")


for _cls, _names in ((KeptDict, IN_DICT), (KeptList, IN_LIST)):
    for _name in _names:
        setattr(_cls, _name, _refuse)


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
