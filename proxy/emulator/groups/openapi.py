"""The group service described as OpenAPI 3.1, made from the table of its paths, so that the two cannot differ."""

import re
from collections.abc import Iterable
from typing import Any, Final

from proxy.emulator.groups.paging import ORDERS
from proxy.emulator.groups.routes import LISTS, ROUTES, Route
from proxy.emulator.groups.service import LISTS_PREFIX, PREFIX
from proxy.emulator.shapes import Field, Shape

Schema = dict[str, Any]

REFUSALS: Final = (400, 401, 403, 404, 405, 409)
_WHOLE: Final[Schema] = {"type": "integer"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 1}
_TYPES: Final = {
    Shape.STRING: "string",
    Shape.INTEGER: "integer",
    Shape.NUMBER: "number",
    Shape.BOOLEAN: "boolean",
    Shape.OBJECT: "object",
    Shape.ARRAY: "array",
}
_PAGED: Final[dict[str, Schema]] = {
    "page": _COUNT,
    "size": _COUNT,
    "order_by": {"enum": [f"{name}.{way}" for name in ORDERS for way in ("asc", "desc")]},
    "search_term": {"type": "string"},
    "member_group_type_id": _WHOLE,
    "parent_id": _WHOLE,
}
_QUERIES: Final[dict[str, dict[str, Schema]]] = {
    f"{PREFIX}usage-overview/": _PAGED,
    LISTS_PREFIX: _PAGED,
    f"{LISTS_PREFIX}managed/": _PAGED,
    f"{PREFIX}{{group}}/": {"member_group_type_id": _WHOLE},
    f"{PREFIX}{{group}}/addable-members/": {"search": {"type": "string"}},
}
"""What the query of a GET may hold, by path."""


def document() -> dict[str, Any]:
    """The whole service."""
    paths: dict[str, dict[str, Any]] = {}
    for prefix, routes in ((PREFIX, ROUTES), (LISTS_PREFIX, LISTS)):
        for route in routes:
            paths.setdefault(prefix + route.path, {})[route.method.lower()] = _operation(prefix + route.path, route)
    token = {"type": "apiKey", "in": "header", "name": "x-access-token"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Member groups", "version": "1"},
        "paths": paths,
        "components": {"securitySchemes": {"token": token}},
        "security": [{"token": []}],
    }


def _operation(path: str, route: Route) -> dict[str, Any]:
    named = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "integer", "minimum": 0}}
        for name in re.findall(r"{(\w+)}", path)
    ]
    asked = _QUERIES.get(path, {}) if route.method == "GET" else {}
    named += [{"name": name, "in": "query", "required": False, "schema": schema} for name, schema in asked.items()]
    answers = {str(status): _answer(False) for status in REFUSALS} | {"200": _answer(True, data=route.method == "GET")}
    found: dict[str, Any] = {"parameters": named, "responses": answers}
    if route.fields:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": _body(route)}}}
    return found


def _answer(success: bool, *, data: bool = False) -> dict[str, Any]:
    required = ["success", *(["data"] if data else []), *([] if success else ["message"])]
    fields = {"success": {"const": success}, "message": {"type": "string"}}
    schema = {"type": "object", "required": required, "properties": fields}
    return {"description": "done" if success else "refused", "content": {"application/json": {"schema": schema}}}


def _body(route: Route) -> Schema:
    schema = _object(route.fields)
    for field in route.fields:
        given = schema["properties"][field.name]
        if field.name in route.nulls or not (field.required or field.name in route.solid):
            given["type"] = [given["type"], "null"]
        if field.name in route.above_0:
            given["exclusiveMinimum"] = 0
    for name, most in route.counts:
        schema["properties"][name] |= {"minItems": 1, "maxItems": most}
    return schema


def _object(fields: Iterable[Field]) -> Schema:
    fields = tuple(fields)
    return {
        "type": "object",
        "required": [field.name for field in fields if field.required],
        "properties": {field.name: _field(field) for field in fields},
    }


def _field(field: Field) -> Schema:
    schema: Schema = {"type": _TYPES[field.shape]}
    if field.shape is Shape.ARRAY:
        schema["items"] = _object(field.inside) if field.inside else {"type": _TYPES[field.each or Shape.OBJECT]}
    return schema
