"""The group service as an OpenAPI document, made from the tables that it answers by; it stands at `/openapi.json`."""

from collections.abc import Mapping
from typing import Any, Final

from proxy.emulator.groups.paging import ORDERS
from proxy.emulator.groups.routes import LISTS, ROUTES, Route
from proxy.emulator.shapes import Field, Shape

PATH: Final = "/openapi.json"
PREFIX: Final = "/v1/admin/member-groups/"
LISTS_PREFIX: Final = "/v1/member-groups/"

_TYPES: Final = {
    Shape.STRING: "string",
    Shape.INTEGER: "integer",
    Shape.NUMBER: "number",
    Shape.BOOLEAN: "boolean",
    Shape.OBJECT: "object",
    Shape.ARRAY: "array",
}
_WHOLE: Final = {"type": "integer", "minimum": -(10**18) + 1, "maximum": 10**18 - 1}
_FROM_1: Final = {**_WHOLE, "minimum": 1}
_FROM_0: Final = {**_WHOLE, "minimum": 0}

_OF_PAGES: Final = {
    "page": _FROM_1,
    "size": _FROM_1,
    "order_by": {"enum": [f"{name}.{way}" for name in ORDERS for way in ("asc", "desc")]},
    "search_term": {"type": "string"},
    "member_group_type_id": _WHOLE,
    "parent_id": _WHOLE,
}
QUERIES: Final[Mapping[tuple[str, str, str], Mapping[str, Any]]] = {
    (PREFIX, "GET", "usage-overview/"): _OF_PAGES,
    (PREFIX, "GET", "{group}/"): {"member_group_type_id": _WHOLE},
    (PREFIX, "GET", "{group}/addable-members/"): {"search": {"type": "string"}},
    (LISTS_PREFIX, "GET", ""): _OF_PAGES,
    (LISTS_PREFIX, "GET", "managed/"): _OF_PAGES,
}
"""Query parameters, by prefix, method and path."""

REFUSALS: Final = {
    "400": "a rule or the form is broken",
    "401": "no session or token",
    "403": "not permitted",
    "404": "not there for this tenant",
    "409": "in the way of something that is there",
}


def document() -> dict[str, Any]:
    """The whole document, OpenAPI 3.1."""
    paths: dict[str, Any] = {}
    for prefix, routes in ((PREFIX, ROUTES), (LISTS_PREFIX, LISTS)):
        for route in routes:
            paths.setdefault(prefix + route.path, {})[route.method.lower()] = _operation(prefix, route)
    token = {"type": "apiKey", "in": "header", "name": "x-access-token"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Member groups, emulated", "version": "1"},
        "paths": paths,
        "components": {"securitySchemes": {"token": token}},
        "security": [{"token": []}],
    }


def _operation(prefix: str, route: Route) -> dict[str, Any]:
    in_path = [name for name in ("group", "member") if f"{{{name}}}" in route.path]
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": _FROM_0} for name in in_path
    ]
    query = QUERIES.get((prefix, route.method, route.path), {})
    parameters += [{"name": name, "in": "query", "schema": schema} for name, schema in query.items()]
    body = {"requestBody": _body(route)} if route.fields else {}
    return {"parameters": parameters, **body, "responses": _responses()}


def _body(route: Route) -> dict[str, Any]:
    counts = dict(route.counts)
    properties = {field.name: _schema(field, route, counts) for field in route.fields}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required := [field.name for field in route.fields if field.required]:
        schema["required"] = required
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _schema(field: Field, route: Route, counts: dict[str, int]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": _TYPES[field.shape]}
    if field.name in route.above_0:
        schema["exclusiveMinimum"] = 0
    if field.inside:
        schema["items"] = {
            "type": "object",
            "properties": {inner.name: {"type": _TYPES[inner.shape]} for inner in field.inside},
            "required": [inner.name for inner in field.inside if inner.required],
        }
    elif field.each is not None:
        schema["items"] = {"type": _TYPES[field.each]}
    if field.name in counts:
        schema |= {"minItems": 1, "maxItems": counts[field.name]}
    nullable = field.name in route.nulls if field.required else field.name not in route.solid
    return {"anyOf": [schema, {"type": "null"}]} if nullable else schema


def _responses() -> dict[str, Any]:
    def answer(said: str, properties: dict[str, Any], *required: str) -> dict[str, Any]:
        schema = {"type": "object", "properties": properties, "required": list(required)}
        return {"description": said, "content": {"application/json": {"schema": schema}}}

    done = answer("done", {"success": {"const": True}, "data": {}}, "success")
    refused = {"success": {"const": False}, "message": {"type": "string"}}
    return {"200": done, **{status: answer(why, refused, "success", "message") for status, why in REFUSALS.items()}}
