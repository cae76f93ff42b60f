"""Arguments judged by a tool's JSON Schema, in one line that names the argument."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

_LONGEST = 300


class Checker:
    """Callable: what is wrong with arguments, or None. The schema is compiled at first use."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self._validator: Validator | None = None

    def __call__(self, args: dict[str, Any]) -> str | None:
        if self._validator is None:
            import jsonschema_rs

            self._validator = jsonschema_rs.validator_for(self.schema)
        try:
            if self._validator.is_valid(args):
                return None
            problems = [self._line(error) for error in self._validator.iter_errors(args)]
        except ValueError as error:
            return f"not JSON: {error}"
        return "; ".join(problems[:3])

    def _line(self, error: ValidationError) -> str:
        where = ".".join(str(step) for step in error.instance_path)
        match error.kind.name:
            case "required":
                name = str(error.kind.value)
                return f"{where}.{name}: missing" if where else f"{name}: missing (it is required)"
            case "additionalProperties" if not where:
                unknown = ", ".join(map(str, error.kind.value))
                known = ", ".join(self.schema.get("properties", {}))
                return f"{unknown}: no such argument; there are {known}"
            case _:
                text = error.message
        if len(text) > _LONGEST:
            text = f"{text[:100]} ... {text[-100:]}"
        return f"{where}: {text}" if where else text
