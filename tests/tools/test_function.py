"""@tool: a signature becomes a schema, a docstring a description, arguments Python values."""

from __future__ import annotations

import enum
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, TypedDict

import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel

from crow.core.ports.tool import ToolEnvironment
from crow.core.tools import ToolResult
from crow.tools import Arg, ToolError, builtin, tool

if TYPE_CHECKING:
    from nowhere import Unheard  # pyright: ignore[reportMissingImports]

    from crow.core.hooks.contexts import ToolContext


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Options(TypedDict):
    deep: bool
    names: NotRequired[list[str]]


class Person(BaseModel):
    name: str
    friends: list[Person] = []


@tool
def weather(city: str, days: int = 1, unit: Literal["c", "f"] = "c") -> str:
    """Tell the weather of a city.

    Not said to the model.

    Args:
        city: name of the city,
            in English
        days: how many
    """
    return f"{city} {days} {unit}"


def schema_of(annotation: Any) -> Any:
    def function(value: Any) -> None: ...

    function.__annotations__ = {"value": annotation}
    return tool(function).parameters["properties"]["value"]


def test_a_signature_becomes_a_schema() -> None:
    assert weather.name == "weather"
    assert weather.description == "Tell the weather of a city."
    assert weather.parameters == snapshot(
        {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "name of the city, in English"},
                "days": {"type": "integer", "description": "how many", "default": 1},
                "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
            },
            "additionalProperties": False,
            "required": ["city"],
        }
    )


@pytest.mark.parametrize(
    "annotation,schema",
    [
        (str, {"type": "string"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (Any, {}),
        (list, {"type": "array"}),
        (dict, {"type": "object"}),
        (Path, {"type": "string"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (int | None, {"type": ["integer", "null"]}),
        (
            list[str] | str,
            {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]},
        ),
        (Literal[1, "a"], {"enum": [1, "a"]}),
        (Colour, {"type": "string", "enum": ["red", "blue"]}),
        (
            Annotated[int, Arg("seconds", minimum=1)],
            {"type": "integer", "description": "seconds", "minimum": 1},
        ),
    ],
)
def test_a_type_becomes_json_schema(annotation: Any, schema: Any) -> None:
    assert schema_of(annotation) == schema


def test_typed_dicts_and_dataclasses_become_objects() -> None:
    assert schema_of(Options) == snapshot(
        {
            "type": "object",
            "properties": {
                "deep": {"type": "boolean"},
                "names": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["deep"],
            "additionalProperties": False,
        }
    )
    assert schema_of(Point)["required"] == ["x"]


def test_definitions_of_a_pydantic_model_stand_at_the_root() -> None:
    @tool
    def invite(guests: list[Person]) -> str:
        return guests[0].friends[0].name

    assert set(invite.parameters["$defs"]) == {"Person"}
    assert invite.check({"guests": [{"name": "a", "friends": [{"name": 3}]}]}) == snapshot(
        'guests.0.friends.0.name: 3 is not of type "string"'
    )


async def test_arguments_become_python_values(bench: ToolEnvironment) -> None:
    got: list[Any] = []

    @tool
    def take(
        colour: Colour,
        points: list[Point],
        pair: tuple[int, Path],
        guest: Person,
        table: dict[str, Point],
        maybe: Colour | None = None,
    ) -> None:
        got.extend([colour, points, pair, guest.name, table, maybe])

    args = {
        "colour": "blue",
        "points": [{"x": 1}, {"x": 2, "y": 3}],
        "pair": [1, "a/b"],
        "guest": {"name": "Ann"},
        "table": {"p": {"x": 4}},
        "maybe": "red",
    }
    assert take.check(args) is None
    assert await take.run(args, bench) == "(no output)"
    assert got == [
        Colour.BLUE,
        [Point(1), Point(2, 3)],
        (1, Path("a/b")),
        "Ann",
        {"p": Point(4)},
        Colour.RED,
    ]


@pytest.mark.parametrize(
    "args,problem",
    [
        ({}, "city: missing (it is required)"),
        ({"city": 3}, 'city: 3 is not of type "string"'),
        ({"city": "x", "town": 1}, "town: no such argument; there are city, days, unit"),
        ({"city": "x", "unit": "k"}, 'unit: "k" is not one of "c" or "f"'),
        ({"city": "x", "days": object()}, "not JSON: Unsupported type: 'object'"),
    ],
)
def test_wrong_arguments_are_named_in_one_line(args: Any, problem: str) -> None:
    assert weather.check(args) == problem


def test_a_huge_wrong_argument_is_not_repeated_whole() -> None:
    problem = weather.check({"city": "x", "days": "y" * 100_000})
    assert problem is not None
    assert problem.startswith("days: ")
    assert len(problem) < 300


async def test_null_counts_as_absent_where_an_argument_is_optional(bench: ToolEnvironment) -> None:
    assert weather.check({"city": "x", "days": None}) is None
    assert ToolResult.of(await weather.run({"city": "x", "days": None}, bench)).text == "x 1 c"
    assert weather.check({"city": None}) == 'city: null is not of type "string"'


async def test_a_whole_number_with_a_point_is_an_integer(bench: ToolEnvironment) -> None:
    assert weather.check({"city": "x", "days": 2.0}) is None
    assert ToolResult.of(await weather.run({"city": "x", "days": 2.0}, bench)).text == "x 2 c"


def test_calling_a_tool_calls_the_function() -> None:
    assert weather("Paris", days=2) == "Paris 2 c"
    assert weather.__doc__ is not None
    assert weather.__name__ == "weather"


async def test_a_sync_function_runs_in_a_thread(bench: ToolEnvironment) -> None:
    @tool
    def where() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert ToolResult.of(await where.run({}, bench)).data is False


async def test_the_context_is_given_by_name_or_by_annotation(bench: ToolEnvironment) -> None:
    @tool
    async def by_name(ctx: Any, text: str) -> str:
        return f"{ctx.session_id} {text}"

    @tool
    async def by_type(text: str, bench: ToolEnvironment) -> str:
        return f"{bench.session_id} {text}"

    @tool
    async def for_checkers_only(text: str, at_hand: ToolContext) -> str:
        return f"{at_hand.session_id} {text}"

    for made in (by_name, by_type, for_checkers_only):
        assert list(made.parameters["properties"]) == ["text"]
        result = await made.run({"text": "hi"}, bench)
        assert ToolResult.of(result).text == "session-1 hi"


async def test_a_tool_can_be_named_described_and_titled(bench: ToolEnvironment) -> None:
    @tool(name="Say-It", description="Say.", kind="think", title="Say {text}")
    async def say(text: Annotated[str, Arg("what", name="-t")]) -> dict[str, str]:
        return {"said": text}

    assert (say.name, say.description, say.kind) == ("Say-It", "Say.", "think")
    assert say.title({"text": "x"}) == "Say x"
    assert say.title({}) == "Say-It"
    assert say.locations({}, "/") == ()
    assert say.check({"-t": "x"}) is None
    assert ToolResult.of(await say.run({"-t": "x"}, bench)).data == {"said": "x"}


async def test_dataclasses_and_models_are_answered_as_json(bench: ToolEnvironment) -> None:
    @tool
    def point() -> Point:
        return Point(1, 2)

    @tool
    def person() -> Person:
        return Person(name="Ann")

    assert ToolResult.of(await point.run({}, bench)).text == '{"x": 1, "y": 2}'
    assert ToolResult.of(await person.run({}, bench)).text == '{"name": "Ann", "friends": []}'


async def test_a_tool_error_is_what_the_model_is_told(bench: ToolEnvironment) -> None:
    @tool
    def fail() -> str:
        raise ToolError("Not today.")

    assert await fail.run({}, bench) == ToolResult.failure("Not today.")


async def test_a_bound_method_can_be_a_tool(bench: ToolEnvironment) -> None:
    class Counter:
        count = 0

        def add(self, by: int) -> int:
            """Add."""
            self.count += by
            return self.count

    counter = Counter()
    made = tool(counter.add)
    assert await made.run({"by": 2}, bench) == ToolResult("2", data=2)
    assert made.name == "add"


def test_types_of_the_calling_function_are_found() -> None:
    class Local(enum.Enum):
        A = "a"

    @tool
    def pick(value: Local) -> str:
        return value.value

    assert pick.parameters["properties"]["value"]["enum"] == ["a"]


def test_a_parameter_without_a_type_is_an_error_at_once() -> None:
    with pytest.raises(TypeError, match="'x' has no type; annotate it, for example x: str"):

        @tool
        def f(x) -> None: ...  # pyright: ignore[reportMissingParameterType]


def test_star_arguments_are_an_error_at_once() -> None:
    with pytest.raises(TypeError, match="'rest' cannot be given by name"):

        @tool
        def f(*rest: str) -> None: ...


def test_a_type_without_json_form_is_an_error_that_says_what_to_use() -> None:
    with pytest.raises(TypeError, match="'x': Thread has no JSON form; use str, int,"):

        @tool
        def f(x: threading.Thread) -> None: ...


def test_a_name_for_type_checkers_only_is_an_error_that_names_it() -> None:
    with pytest.raises(TypeError, match=r"Unheard is not known .* outside of TYPE_CHECKING"):

        @tool
        def f(x: Unheard) -> None: ...


def test_a_dataclass_that_contains_itself_is_an_error() -> None:
    @dataclass
    class Node:
        below: list[Any]

    Node.__annotations__["below"] = list[Node]
    with pytest.raises(TypeError, match="Node contains itself; write it as a pydantic model"):

        @tool
        def f(x: Node) -> None: ...


def test_sphinx_parameters_are_read_too() -> None:
    @tool
    def f(a: str, b: int) -> None:
        """Do it.

        :param a: the first
        :param int b: the second,
            on two lines
        """

    assert [each["description"] for each in f.parameters["properties"].values()] == [
        "the first",
        "the second, on two lines",
    ]
    assert f.description == "Do it."


def test_importing_the_tools_loads_no_heavy_library() -> None:
    code = (
        "import sys, crow.tools; crow.tools.builtin(); "
        "print([n for n in ('pydantic', 'jsonschema_rs', 'pathspec', 'platformdirs', 'acp', "
        "'difflib', 'tempfile', 'shutil') if n in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_a_function_that_yields_is_refused_at_once():
    def lines(path: str) -> Iterator[str]:
        yield path

    async def more(path: str) -> AsyncIterator[str]:
        yield path

    for function in (lines, more):
        with pytest.raises(TypeError, match="it yields; return the whole answer"):
            tool(function)


def test_a_kind_that_is_none_is_refused_with_the_nearest_one():
    with pytest.raises(TypeError, match="tool f: there is no kind 'reed'; did you mean 'read'"):

        @tool(kind="reed")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
        def f() -> str:  # pyright: ignore[reportUnusedFunction]
            """Do nothing."""
            return ""


@pytest.mark.parametrize("written", builtin(), ids=str)
def test_the_schemas_of_the_built_in_tools_are_what_their_signatures_say(written: Any) -> None:
    read = tool(written.function).parameters
    said, meant = written.parameters["properties"], read["properties"]
    assert [*said.values()] == [*meant.values()]
    keys = dict(zip(meant, said, strict=True))
    assert {**written.parameters, "properties": {}} == {
        **read,
        "properties": {},
        **({"required": [keys[each] for each in read["required"]]} if "required" in read else {}),
    }
    assert [name for name in keys if keys[name] != name] == (
        ["ignore_case", "numbers", "after", "before", "around"] if written.name == "Grep" else []
    )


async def test_an_async_function_may_hand_on_what_another_one_gives(bench: ToolEnvironment) -> None:
    async def fetch(city: str) -> str:
        return f"sunny in {city}"

    @tool
    async def weather(city: str) -> Any:
        """Tell the weather."""
        return fetch(city)

    assert await weather.run({"city": "Rome"}, bench) == ToolResult("sunny in Rome")
