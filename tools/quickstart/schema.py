# SPDX-License-Identifier: Apache-2.0
"""Whether a value is as a JSON Schema says, for the words that report.schema.json uses.

A schema with any other word is refused: what is not understood must not pass.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SCHEMA = Path(__file__).with_name("report.schema.json")
TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
}
OF_SCHEMAS_THEMSELVES = {"$schema", "title", "description"}

Schema = dict[str, Any]


def report_schema() -> Schema:
    return json.loads(SCHEMA.read_text(encoding="utf-8"))


def faults_of(value: Any, schema: Schema, place: str = "$") -> Iterator[str]:
    """Each with its place, as in $.sources[2].tokens."""
    if unknown := set(schema) - OF_SCHEMAS_THEMSELVES - {"type", *CHECKS}:
        raise ValueError(f"{place}: words of JSON Schema that are not known here: {unknown}")
    if "type" in schema:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(TYPES[name](value) for name in types):
            yield f"{place} is {json.dumps(value)[:60]}, and no {' or '.join(types)}"
            return
    for word, check in CHECKS.items():
        if word in schema:
            yield from check(value, schema, place)


# A word says nothing of values of types that it is not about.
def required(value: Any, schema: Schema, place: str) -> Iterator[str]:
    for name in schema["required"]:
        if isinstance(value, dict) and name not in value:
            yield f"{place} has no {name}"


def properties(value: Any, schema: Schema, place: str) -> Iterator[str]:
    for name, of_property in schema["properties"].items():
        if isinstance(value, dict) and name in value:
            yield from faults_of(value[name], of_property, f"{place}.{name}")


def additional_properties(value: Any, schema: Schema, place: str) -> Iterator[str]:
    if schema["additionalProperties"] is not False:
        raise ValueError(f"{place}: additionalProperties can only be false here")
    for name in sorted(set(value) - set(schema["properties"])) if isinstance(value, dict) else ():
        yield f"{place}.{name} is not in the schema"


def items(value: Any, schema: Schema, place: str) -> Iterator[str]:
    for number, item in enumerate(value if isinstance(value, list) else ()):
        yield from faults_of(item, schema["items"], f"{place}[{number}]")


def min_items(value: Any, schema: Schema, place: str) -> Iterator[str]:
    if isinstance(value, list) and len(value) < schema["minItems"]:
        yield f"{place} has {len(value)} items; {schema['minItems']} are the least"


def minimum(value: Any, schema: Schema, place: str) -> Iterator[str]:
    if TYPES["number"](value) and not value >= schema["minimum"]:  # Nor NaN.
        yield f"{place} is {value}; {schema['minimum']} is the least"


def enum(value: Any, schema: Schema, place: str) -> Iterator[str]:
    if value not in schema["enum"]:
        yield f"{place} is {json.dumps(value)[:60]}, and none of {schema['enum']}"


CHECKS: dict[str, Callable[[Any, Schema, str], Iterator[str]]] = {
    "required": required,
    "properties": properties,
    "additionalProperties": additional_properties,
    "items": items,
    "minItems": min_items,
    "minimum": minimum,
    "enum": enum,
}
