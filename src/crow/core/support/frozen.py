"""Frozen values, and some that only their owner changes: data classes, JSON, lists, sets, dicts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, MISSING, Field, FrozenInstanceError, dataclass, field, fields
from functools import cache, partial
from itertools import repeat
from operator import attrgetter
from threading import RLock
from typing import Any, NoReturn, TypeVar, cast, dataclass_transform

T = TypeVar("T")
V = TypeVar("V")


SPECIAL = re.compile("ClassVar|InitVar|KW_ONLY")
"""Annotations of what is no field, or no common one."""
KEYWORDS = (KW_ONLY, "KW_ONLY", "dataclasses.KW_ONLY")
"""Annotations of what is no field, and behind which fields are given by name."""
HASH = attrgetter("__class__.__hash__")
"""How a value is hashed: None for one that can be changed in place, which is no default."""
OF_A_CLASS = ("__dict__", "__weakref__", "__dataclass_fields__", "__dataclass_params__")
"""What is made anew for a class with slots."""
FIELD: Any = Field
NESTED: Any = (dict, list)
"""What JSON holds others in; that is no type here, for what is in one is not known."""
SHAPING = RLock()


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T], *, assignable: bool = False) -> type[T]:
    """``dataclass(frozen=True, slots=True)``, made in a tenth of the time.

    Before Python 3.13 `dataclass` compiles six functions for each class; this one compiles
    ``__init__`` alone, when it is first asked for, as is what `dataclasses` knows of the class.
    `dataclasses.fields` and `replace`, ``match`` and pickling work as ever. An assignment is
    refused with what to do instead, unless the class is ``assignable``, as `mutable` has it.
    """
    known = cast("type[Any]", cls)
    known.__doc__ = known.__doc__ or known.__name__  # else `dataclass` asks for a signature, dearly
    written = vars(known)
    types: dict[str, Any] = written.get("__annotations__", {})
    given: dict[str, Any] = dict(zip(types, map(written.get, types, repeat(MISSING)), strict=True))
    special = hasattr(known, "__dataclass_fields__") or None in map(HASH, given.values())
    if special or SPECIAL.search(" ".join(map(str, types.values()))):  # for `dataclass` to read
        _shape(known, not assignable)
        given = {each.name: each for each in fields(known)}
    own = {**(METHODS if assignable else FROZEN), "__match_args__": tuple(given), **written}
    for name in (*given, *OF_A_CLASS):
        own.pop(name, None)
    slots = dict.fromkeys(given)
    for base in known.__mro__[1:-1]:
        for name in vars(base).get("__slots__", ()):
            slots.pop(name, None)
    own["__slots__"] = [*slots]
    made: Any = cast(Any, type(known))(known.__name__, known.__bases__, own)
    made.__qualname__ = known.__qualname__
    made.__init__ = _Init((made, given, not assignable, 3, len(given)))
    made.__dataclass_fields__ = _Shape((made, known, not assignable))
    return made


@dataclass_transform(field_specifiers=(field,))
def mutable(cls: type[T]) -> type[T]:
    """``dataclass(slots=True)``, made in a tenth of the time; see `frozen`."""
    return frozen(cls, assignable=True)


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def entity(cls: type[T]) -> type[T]:
    """``dataclass(eq=False)``, made in a tenth of the time; see `frozen`.

    An object is equal to itself alone, and may have attributes that are no fields.
    """
    known = cast("type[Any]", cls)
    known.__doc__ = known.__doc__ or known.__name__
    written = vars(known)
    types: dict[str, Any] = written.get("__annotations__", {})
    given: dict[str, Any] = dict(zip(types, map(written.get, types, repeat(MISSING)), strict=True))
    positional = len(given)
    if types.get("_") in KEYWORDS:
        positional = [*given].index("_")
        del given["_"]
    special = hasattr(known, "__dataclass_fields__") or None in map(HASH, given.values())
    if special or SPECIAL.search(" ".join([str(types[name]) for name in given])):
        return dataclass(eq=False)(cls)
    for name, each in given.items():
        if isinstance(each, FIELD):
            if each.default is MISSING:
                delattr(known, name)
            else:
                setattr(known, name, each.default)
    made = {"__init__": _Init((known, given, False, 3, positional)), "__repr__": _repr}
    for name, each in made.items():
        if name not in written:
            setattr(known, name, each)
    known.__match_args__ = tuple(given)[:positional]
    known.__dataclass_fields__ = _OwnShape((known, given, False))
    return cls


class _Init(list[Any]):
    """Stands for the ``__init__`` of a class, which is compiled when somebody looks at it.

    So it is for the fourth object: of most classes there are fewer. What the class itself gives its
    fields goes past its ``__setattr__``, which looks at others' values.
    """

    __slots__ = ()

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        if not self[3] or not isinstance(instance, self[0]):  # who looks at it, mostly
            return self._compiled(instance, owner)
        self[3] -= 1
        return partial(self._fill, instance)

    def _fill(self, instance: Any, /, *args: Any, **kwargs: Any) -> None:
        cls, given, frozen, _, positional = self
        values = {**dict(zip(given, args[:positional], strict=False)), **kwargs}
        put: Any = object.__setattr__ if frozen else setattr
        is_right = len(values) == len(args) + len(kwargs) and not values.keys() - given.keys()
        for name, each in given.items():
            value, place = values.get(name, MISSING), put
            if value is MISSING:
                value = each.default if (is_field := isinstance(each, FIELD)) else each
                place = object.__setattr__ if "__setattr__" in vars(cls) else put
                if is_field and each.default_factory is not MISSING:
                    value = each.default_factory()
            if value is MISSING or not is_right:
                return self._compiled(instance)(*args, **kwargs)  # which says what is wrong
            place(instance, name, value)
        if hasattr(cls, "__post_init__"):
            instance.__post_init__()
        return None

    def _compiled(self, instance: object, owner: type[Any] | None = None) -> Any:
        cls, given, frozen, _, positional = self
        names: dict[str, Any] = {"_set": object.__setattr__}
        looks, put = "__setattr__" in vars(cls) and not frozen, "_set(self, {0!r}, {1})"
        put_theirs = put if frozen else "self.{0} = {1}"
        args, lines = ["self"], list[str]()
        for name, each in given.items():
            own, default = name, f"_{name}"
            is_field = isinstance(each, FIELD)
            if is_field and each.default_factory is not MISSING:
                names[default], names[f"_make_{name}"] = MISSING, each.default_factory
                own = f"_make_{name}()"
            elif (known := each.default if is_field else each) is not MISSING:
                names[default] = known
            args.append(f"{name}={default}" if default in names else name)
            line = put_theirs.format(name, name)
            if default in names and (looks or own != name):
                lines.append(f"if {name} is {default}: {put.format(name, own)}")
                line = f"else: {line}"
            lines.append(line)
        by_name = ["*"] if positional < len(given) else []
        args[positional + 1 : positional + 1] = by_name
        if hasattr(cls, "__post_init__"):
            lines.append("self.__post_init__()")
        body = "\n ".join(lines or ["pass"])
        exec(f"def __init__({', '.join(args)}):\n {body}", names)  # noqa: S102 - as dataclass does
        made = names["__init__"]
        made.__qualname__ = f"{cls.__qualname__}.__init__"
        types: dict[str, Any] = {}
        for base in cast("tuple[type, ...]", cls.__mro__)[::-1]:
            types |= vars(base).get("__annotations__", {})
        for name in types.keys() - given.keys():
            del types[name]
        made.__annotations__ = {**types, "return": None}
        cls.__init__ = made
        return made.__get__(instance, owner)


class _Shape(tuple[Any, ...]):
    """Stands for what `dataclasses` knows of a class until somebody asks for it."""

    __slots__ = ()

    def __get__(self, instance: object, owner: type[Any] | None = None) -> dict[str, Field[Any]]:
        made, cls, frozen = self
        made.__dataclass_fields__ = _shape(cls, frozen)
        made.__dataclass_params__ = vars(cls)["__dataclass_params__"]
        return made.__dataclass_fields__


class _OwnShape(_Shape):
    """The same for a class that is as it was written, but for what its fields were given."""

    __slots__ = ()

    def __get__(self, instance: object, owner: type[Any] | None = None) -> dict[str, Field[Any]]:
        cls: type[Any] = self[0]
        given: dict[str, Any] = self[1]
        with SHAPING:
            if isinstance(vars(cls)["__dataclass_fields__"], _OwnShape):
                for name, each in given.items():
                    if each is not MISSING:
                        setattr(cls, name, each)
                dataclass(init=False, repr=False, eq=False)(cls)
        return vars(cls)["__dataclass_fields__"]


def is_frozen(cls: type[Any]) -> bool:
    """True for a data class that is frozen; nothing of it has to be made for that."""
    for each in cast("tuple[type[Any], ...]", cls.__mro__):
        shape: Any = vars(each).get("__dataclass_fields__")
        if shape is not None:
            params = vars(each).get("__dataclass_params__")
            return shape[2] if isinstance(shape, _Shape) else params is not None and params.frozen
    return False


def _shape(cls: type[Any], frozen: bool) -> dict[str, Field[Any]]:
    """The fields of a class as it was written, as `dataclass` knows them.

    One thread at a time finds out: `dataclass` takes what a field was given out of the class.
    """
    if "__dataclass_fields__" in vars(cls):
        return vars(cls)["__dataclass_fields__"]
    with SHAPING:
        return _found_shape(cls, frozen)


def _found_shape(cls: type[Any], frozen: bool) -> dict[str, Field[Any]]:
    if "__dataclass_fields__" not in vars(cls):
        below = frozen and hasattr(cls, "__dataclass_fields__")
        made: Any = dataclass(init=False, repr=False, eq=False, frozen=below)(cls)
        made.__dataclass_params__.frozen = frozen  # what `dataclass` asks of the bases of a class
    return vars(cls)["__dataclass_fields__"]


@cache
def _compared(cls: Any) -> Callable[[Any], Any] | None:
    names = [each.name for each in fields(cls) if each.compare]
    return attrgetter(*names) if names else None


@cache
def _hashed(cls: Any) -> list[str]:
    return [each.name for each in fields(cls) if (each.compare if each.hash is None else each.hash)]


def _equal(self: Any, other: object) -> bool:
    if other is self:
        return True
    if other.__class__ is not self.__class__:
        return NotImplemented
    get = _compared(self.__class__)
    return get is None or get(self) == get(other)


def _hash(self: Any) -> int:
    return hash(tuple([getattr(self, name) for name in _hashed(self.__class__)]))


def _repr(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse(self: Any, name: str, *_: object) -> NoReturn:
    called, known = type(self).__name__, [each.name for each in fields(self)]
    if name not in known and hasattr(self.__class__, name):
        instead = ": change what is in it" if isinstance(getattr(self, name), dict) else ""
        raise AttributeError(f"{called}.{name} cannot be assigned{instead}")
    if name not in known:
        raise AttributeError(f"{called} has no {name}; it has {', '.join(known)}")
    instead = f"dataclasses.replace(..., {name}=...) makes another one"
    raise FrozenInstanceError(f"{called}.{name} cannot be assigned: {instead}")


def _reduce(self: Any) -> tuple[Any, ...]:
    return cast(type, self.__class__), _values(self)


def _values(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, each.name) for each in fields(self)])


METHODS: dict[str, Any] = {"__eq__": _equal, "__repr__": _repr, "__hash__": None}
FROZEN: dict[str, Any] = {
    **METHODS,
    "__hash__": _hash,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__reduce__": _reduce,
}

IN_LIST = (
    "append clear extend insert pop remove reverse sort __delitem__ __iadd__ __imul__ __setitem__"
).split()
IN_DICT = "clear pop popitem setdefault update __delitem__ __ior__ __setitem__".split()
IN_SET = (
    "add clear difference_update discard intersection_update pop remove "
    "symmetric_difference_update update __iand__ __ior__ __isub__ __ixor__"
).split()


class KeptDict(dict[Any, Any]):
    """An object that stays as it is, made by `kept`. Copies of it, deep ones too, are plain.

    ``fits`` is the type that it was last found to be of: it is of that for good. ``flow`` is what
    `crow.core.history.flow` has found of a message.
    """

    __slots__ = ("fits", "flow")
    fits: Any
    flow: Any

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


def _refuse_change(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError("this cannot be changed in place, many hold it: replace it by a copy")


def _refuse_own(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError("this cannot be changed by others, nor emptied: it is the loop's own")


for _cls, _names, _no in (
    (KeptDict, IN_DICT, _refuse_change),
    (KeptList, IN_LIST, _refuse_change),
    (OwnList, IN_LIST, _refuse_own),
    (OwnSet, IN_SET, _refuse_own),
    (Shelf, ["clear", "popitem"], _refuse_own),
):
    for _name in _names:
        setattr(_cls, _name, _no)


def kept(value: V) -> V:
    """A value that nobody can change in place, all the way down; itself where it is one."""
    if isinstance(value, KeptDict | KeptList):
        return value
    made: Any = value
    whole: Any = value  # a cast takes its time
    if isinstance(value, dict):
        items = {**whole}
        for key, each in items.items():
            if isinstance(each, NESTED):
                items[key] = kept(each)
        made = KeptDict(items)
        made.fits = None
    elif isinstance(value, list):
        every = [*whole]
        for at, each in enumerate(every):
            if isinstance(each, NESTED):
                every[at] = kept(each)
        made = KeptList(every)
    return made


def thawed(value: V) -> V:
    """A copy of JSON that may be changed in place, all the way down."""
    whole: Any = value
    if isinstance(value, dict):
        whole = {**whole}
        for key, each in whole.items():
            if isinstance(each, NESTED):
                whole[key] = thawed(each)
    elif isinstance(value, list):
        whole = [*map(thawed, whole)]
    return whole


def all_kept(values: Iterable[Any]) -> list[Any]:
    """Values that stay as they are, in a list of its own."""
    return [each if type(each) is KeptDict else kept(each) for each in values]
