"""Typed answers: by a JSON Schema, or by a pydantic model; this package does not require pydantic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from ._requests import Json


@runtime_checkable
class PydanticModel(Protocol):
    """The methods of a pydantic 2 class that are used here."""

    def model_json_schema(self) -> dict[str, Any]: ...
    def model_validate(self, obj: Any) -> Any: ...


Schema = Mapping[str, Any] | PydanticModel


def body_of(prompt: str, schema: Schema | None, body: Json) -> Json:
    """The body of a request whose answer must fit the schema, if one is given."""
    if schema is None:
        return {"prompt": prompt, **body}
    return {"prompt": prompt, "response_schema": schema.model_json_schema() if isinstance(schema, PydanticModel) else schema, **body}


def value_of(output: Any, schema: Schema | None) -> Any:
    """The output for the caller: an instance of the model if one was given."""
    return schema.model_validate(output) if isinstance(schema, PydanticModel) else output
