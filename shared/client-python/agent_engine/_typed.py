"""Answers of a form: a JSON Schema, or a model of pydantic, which this package does not need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from ._requests import Json


@runtime_checkable
class PydanticModel(Protocol):
    """A class of pydantic 2, as far as it is used here."""

    def model_json_schema(self) -> dict[str, Any]: ...
    def model_validate(self, obj: Any) -> Any: ...


Schema = Mapping[str, Any] | PydanticModel


def body_of(prompt: str, schema: Schema | None, body: Json) -> Json:
    """The body of a request whose answer is to fit the schema, if there is one."""
    if schema is None:
        return {"prompt": prompt, **body}
    return {"prompt": prompt, "response_schema": schema.model_json_schema() if isinstance(schema, PydanticModel) else schema, **body}


def value_of(output: Any, schema: Schema | None) -> Any:
    """The output as the caller wants it: an instance of the model, where one was given."""
    return schema.model_validate(output) if isinstance(schema, PydanticModel) else output
