"""`frozen` beside the `dataclass` that it stands for: whatever one does, the other does."""

import copy
import dataclasses
import inspect
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY
from operator import attrgetter
from threading import Barrier
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crow.core.support.frozen import entity, frozen, mutable
from crow.core.tools import Call

KINDS: Any = dataclasses.dataclass(frozen=True, slots=True)


@frozen
class Mine:
    """A class with each kind of field."""

    a: int
    b: str = "b"
    c: list[int] = dataclasses.field(default_factory=list[int])
    d: object = dataclasses.field(default=None, repr=False)
    e: object = dataclasses.field(default=None, compare=False)
    f: object = dataclasses.field(default=None, hash=False)


@KINDS
class Theirs:
    """The same by the standard library."""

    a: int
    b: str = "b"
    c: list[int] = dataclasses.field(default_factory=list[int])
    d: object = dataclasses.field(default=None, repr=False)
    e: object = dataclasses.field(default=None, compare=False)
    f: object = dataclasses.field(default=None, hash=False)


@mutable
class Changing:
    """The same, and it may change."""

    a: int
    b: str = "b"
    c: list[int] = dataclasses.field(default_factory=list[int])
    d: object = dataclasses.field(default=None, repr=False)
    e: object = dataclasses.field(default=None, compare=False)
    f: object = dataclasses.field(default=None, hash=False)


@dataclasses.dataclass(slots=True)
class ChangingTheirs:
    """That by the standard library."""

    a: int
    b: str = "b"
    c: list[int] = dataclasses.field(default_factory=list[int])
    d: object = dataclasses.field(default=None, repr=False)
    e: object = dataclasses.field(default=None, compare=False)
    f: object = dataclasses.field(default=None, hash=False)


ARGUMENTS = st.fixed_dictionaries(
    {"a": st.integers(0, 1)},
    optional={
        "b": st.sampled_from("bc"),
        "c": st.lists(st.integers(0, 1), max_size=1),
        "d": st.sampled_from([None, 1]),
        "e": st.sampled_from([None, 1]),
        "f": st.sampled_from([None, ()]),
    },
)


@given(ARGUMENTS, ARGUMENTS)
def test_it_is_the_dataclass_of_the_same_fields(one: dict[str, Any], two: dict[str, Any]):
    mine, theirs = Mine(**one), Theirs(**one)
    assert repr(mine) == repr(theirs).replace("Theirs", "Mine")
    assert dataclasses.asdict(mine) == dataclasses.asdict(theirs)
    assert (mine == Mine(**two)) == (theirs == Theirs(**two))
    changed = dataclasses.replace(mine, **two)
    assert dataclasses.asdict(changed) == dataclasses.asdict(dataclasses.replace(theirs, **two))
    assert mine != theirs
    assert mine != one


@given(st.lists(st.integers(), max_size=4), st.dictionaries(st.sampled_from("abcz"), st.integers()))
def test_the_first_objects_of_a_class_are_made_like_all_others(
    args: list[int], kwargs: dict[str, int]
):
    @mutable
    class Few:
        a: object
        b: object = 2
        c: object = dataclasses.field(default_factory=list[int])

        def __post_init__(self) -> None:
            self.b = [self.b]

    made: list[str] = []
    for _ in range(6):
        try:
            few: object = Few(*args, **kwargs)
            made.append(repr(few))
        except TypeError as error:
            made.append(str(error))
    assert len(set(made)) == 1, made


@given(ARGUMENTS)
def test_copies_are_equal_and_of_their_own(given: dict[str, Any]):
    mine = Mine(**given)
    for other in (copy.copy(mine), copy.deepcopy(mine), pickle.loads(pickle.dumps(mine))):
        assert other == mine
        assert other is not mine
    assert copy.deepcopy(mine).c is not mine.c


def test_equal_ones_have_one_hash_and_what_has_none_says_so():
    @frozen
    class Point:
        x: int
        note: object = dataclasses.field(default=None, hash=False)

    assert hash(Point(1, [1])) == hash(Point(1, [2]))
    assert len({Point(1), Point(1), Point(2)}) == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(Mine(1))


def test_defaults_that_are_made_are_made_for_each():
    assert Mine(1).c is not Mine(1).c
    with pytest.raises(ValueError, match="mutable default"):

        @frozen
        class Shared:  # pyright: ignore[reportUnusedClass]
            c: list[int] = []  # noqa: RUF012


def test_a_class_that_looks_at_what_it_is_given_does_not_look_at_its_own_defaults():
    looked: list[tuple[str, object]] = []

    @mutable
    class Looks:
        a: int
        b: str = "b"
        c: list[int] = dataclasses.field(default_factory=list[int])

        def __setattr__(self, name: str, value: object) -> None:
            looked.append((name, value))
            object.__setattr__(self, name, value)

    assert (Looks(1), looked) == (Looks(1), [("a", 1)] * 2)
    looked.clear()
    assert repr(Looks(1, "c", [2])).endswith("Looks(a=1, b='c', c=[2])")
    assert looked == [("a", 1), ("b", "c"), ("c", [2])]


def test_a_wrong_call_names_the_class():
    wrong: Any = Mine
    with pytest.raises(TypeError, match=r"Mine\.__init__\(\) missing 1 required"):
        wrong()
    with pytest.raises(TypeError, match=r"Mine\.__init__\(\) got an unexpected keyword .*'z'"):
        wrong(1, z=2)
    mine, theirs = inspect.signature(Mine), inspect.signature(Theirs)
    assert list(mine.parameters) == list(theirs.parameters)
    assert mine.parameters["a"].annotation == theirs.parameters["a"].annotation


def test_nothing_can_be_assigned_and_the_error_says_what_to_do():
    mine: Any = Mine(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match=r"dataclasses.replace\(\.\.\., a="):
        mine.a = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match=r"Mine.a cannot be assigned"):
        del mine.a
    with pytest.raises(AttributeError, match="Mine has no z; it has a, b, c"):
        mine.z = 2
    with pytest.raises(AttributeError, match=r"Call\.input cannot be assigned"):
        setattr(Call("1", "Bash"), "input", {})  # noqa: B010 - a type checker refuses it
    assert mine.a == 1


def test_a_class_keeps_its_own_methods_and_is_matched_by_position():
    @frozen
    class Named:
        name: str
        made: str = ""

        def __post_init__(self) -> None:
            object.__setattr__(self, "made", self.name.upper())

        def __repr__(self) -> str:
            return f"<{self.name}>"

    match Named("x"):
        case Named(name, made):
            assert (name, made) == ("x", "X")
    assert repr(Named("x")) == "<x>"


def test_classes_below_it_are_either_kind():
    @frozen
    class Below(Mine):
        g: int = 0

    @KINDS
    class Other(Mine):
        g: int = 0

    assert Below(1, g=2).g == 2
    assert Below(1) == Below(1) != Below(1, g=1)
    assert Other(1, g=2).g == 2
    assert repr(Other(1)).endswith("Other(a=1, b='b', c=[], e=None, f=None, g=0)")


def test_a_class_without_fields_is_one_too():
    @frozen
    class Nothing:
        """Nothing."""

    assert Nothing() == Nothing()
    assert repr(Nothing()).endswith("Nothing()")


def test_what_is_no_field_stays_what_it_was():
    @frozen
    class Counted:
        known: ClassVar[int] = 7
        name: str

    assert Counted("x").known == Counted.known == 7
    assert [each.name for each in dataclasses.fields(Counted)] == ["name"]


@given(ARGUMENTS, ARGUMENTS)
def test_a_mutable_one_is_the_dataclass_that_may_change(one: dict[str, Any], two: dict[str, Any]):
    mine, theirs = Changing(**one), ChangingTheirs(**one)
    assert repr(mine) == repr(theirs).replace("ChangingTheirs", "Changing")
    assert (mine == Changing(**two)) == (theirs == ChangingTheirs(**two))
    for name, value in two.items():
        setattr(mine, name, value)
        setattr(theirs, name, value)
    assert dataclasses.asdict(mine) == dataclasses.asdict(theirs)
    assert copy.deepcopy(mine) == mine
    assert dataclasses.asdict(dataclasses.replace(mine, a=5)) == {
        **dataclasses.asdict(mine),
        "a": 5,
    }


def test_a_mutable_one_has_no_hash_and_no_other_fields():
    mine: Any = Changing(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(mine)
    with pytest.raises(AttributeError):
        mine.z = 2


def test_a_mutable_one_below_a_frozen_class_is_refused_as_ever():
    with pytest.raises(TypeError, match="non-frozen"):

        @mutable  # pyright: ignore[reportGeneralTypeIssues]
        class Below(Mine):  # pyright: ignore[reportUnusedClass]
            g: int = 0


def test_a_mutable_one_sets_its_fields_as_anybody_does():
    @mutable
    class Loud:
        name: str

        def __setattr__(self, name: str, value: object) -> None:
            object.__setattr__(self, name, f"{value}!")

    assert Loud("x").name == "x!"


def test_threads_that_ask_for_the_fields_at_once_find_the_same() -> None:
    """What a field was given, such as ``compare=False``, is read once."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            for _ in range(60):

                @frozen
                class Thing:
                    name: str
                    table: dict[str, int] = dataclasses.field(
                        default_factory=dict[str, int], compare=False
                    )
                    other: dict[str, int] = dataclasses.field(
                        default_factory=dict[str, int], compare=False
                    )

                made, gate = Thing("x"), Barrier(8)

                def hashed(made: Thing = made, gate: Barrier = gate) -> int:
                    gate.wait()
                    return hash(made)

                assert len({each.result() for each in [pool.submit(hashed) for _ in range(8)]}) == 1
    finally:
        sys.setswitchinterval(interval)


def test_a_class_that_is_not_made_yet_binds_its_init_as_inspect_of_python_3_13_does() -> None:
    @frozen
    class Fresh:
        x: int

    unmade = vars(Fresh)["__init__"]
    assert [*inspect.signature(unmade.__get__(Fresh, type)).parameters] == ["x"]


@entity
class Thing:
    """What is itself alone, and is given most by name."""

    a: int
    b: list[int] = dataclasses.field(default_factory=list[int])
    _: KW_ONLY
    c: str = "c"
    d: dict[str, int] = dataclasses.field(default_factory=dict[str, int], repr=False)


@dataclasses.dataclass(eq=False)
class ThingTheirs:
    """The same by the standard library."""

    a: int
    b: list[int] = dataclasses.field(default_factory=list[int])
    _: KW_ONLY
    c: str = "c"
    d: dict[str, int] = dataclasses.field(default_factory=dict[str, int], repr=False)


@given(
    st.lists(st.integers(), max_size=4),
    st.dictionaries(st.sampled_from("abcdz"), st.integers()),
    st.booleans(),
)
def test_an_entity_is_the_dataclass_of_the_same_fields(
    args: list[int], kwargs: dict[str, int], at_once: bool
):
    @entity
    class Mine:
        a: int
        b: list[int] = dataclasses.field(default_factory=list[int])
        _: KW_ONLY
        c: str = "c"
        d: dict[str, int] = dataclasses.field(default_factory=dict[str, int], repr=False)

    if at_once:
        taken, theirs = (
            inspect.signature(Mine).parameters,
            inspect.signature(ThingTheirs).parameters,
        )
        assert [(p.name, p.kind) for p in taken.values()] == [
            (p.name, p.kind) for p in theirs.values()
        ]
    told: list[str] = []
    kinds: list[Any] = [*[Mine] * 5, ThingTheirs]
    for cls in kinds:
        try:
            made: Any = cls(*args, **kwargs)
            told.append(f"{made!r} {made.d} {dataclasses.asdict(made)}".rpartition(".")[2])
        except TypeError as error:
            told.append(str(error).rpartition("__init__()")[2])
    assert len({text.replace("ThingTheirs", "Mine") for text in told}) == 1, told


def test_an_entity_is_equal_to_itself_alone_and_takes_other_attributes():
    one: Any = Thing(1)
    assert one == one
    assert one != Thing(1)
    assert {one: 1}[one] == 1
    one.more = 2
    assert one.more == 2


def test_an_entity_has_its_defaults_in_the_class_as_a_dataclass_does():
    assert Thing.c == ThingTheirs.c
    assert not hasattr(Thing, "b")
    assert Thing.__match_args__ == ThingTheirs.__match_args__
    every = [
        [*map(str, map(type, map(attrgetter("default"), dataclasses.fields(c))))]
        for c in (Thing, ThingTheirs)
    ]
    assert every[0] == every[1]
    assert not hasattr(Thing, "b")
    assert Thing.c == "c"
    assert dataclasses.replace(Thing(1), c="d").c == "d"
    assert [f.name for f in dataclasses.fields(Thing) if f.kw_only] == ["c", "d"]


def test_an_entity_keeps_the_methods_that_it_has_and_calls_super():
    class Base:
        def __init__(self) -> None:
            self.begun = True

    @entity
    class Own(Base):
        a: int = 1

        def __repr__(self) -> str:
            return "mine"

        def __post_init__(self) -> None:
            super().__init__()

    for _ in range(5):
        assert Own().begun
        assert repr(Own()) == "mine"


def test_an_entity_below_another_data_class_has_the_fields_of_both():
    @entity
    class More(Thing):
        e: int = 5

    made: Any = More
    assert made(1, [2], 3).e == 3
    assert [f.name for f in dataclasses.fields(More)] == ["a", "b", "c", "d", "e"]


def test_threads_that_ask_for_the_fields_of_an_entity_at_once_get_the_same():
    for _ in range(20):

        @entity
        class Fresh:
            a: int
            b: list[int] = dataclasses.field(default_factory=list[int])

        together = Barrier(4)

        def ask(cls: Any = Fresh, together: Barrier = together) -> list[str]:
            together.wait()
            return [f.name for f in dataclasses.fields(cls)]

        with ThreadPoolExecutor(4) as pool:
            found = [each.result() for each in [pool.submit(ask) for _ in range(4)]]
        assert found == [["a", "b"]] * 4


def test_a_class_below_a_frozen_one_is_as_frozen():
    class Below(Mine):
        __slots__ = ()

    with pytest.raises(dataclasses.FrozenInstanceError):
        Below(1).a = 2  # pyright: ignore[reportAttributeAccessIssue]
    assert Below(1) == Below(1)
    assert Below(1) != Mine(1)
    assert pickle.loads(pickle.dumps(Mine(1))) == Mine(1)
