"""A tool with a card of its own in the terminal: numbers that the model wants to show, as bars.

    crow --extension examples/card.py

The card is for people: the model reads the tool's text, and so does a client that is no terminal.
None leaves a card to the next extension, or as it is.
"""

from crow import Call, ToolResult, tool


@tool(name="Bars", kind="other")
def bars(values: dict[str, float]) -> str:
    """Show numbers by name as bars, where the user can see them."""
    return "\n".join(f"{name}: {value:g}" for name, value in values.items())


def terminal_card(call: Call, result: ToolResult) -> list[str] | None:
    if call.name != "Bars" or result.error:
        return None
    values: dict[str, float] = call.args["values"]
    width = max(map(len, values), default=0)
    unit = 30 / (max(map(abs, values.values()), default=0) or 1)
    return [
        f"{name:{width}}  {'█' * round(abs(value) * unit)} {value:g}"
        for name, value in values.items()
    ]
