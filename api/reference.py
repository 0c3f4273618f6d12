"""The OpenAPI document as a page for people: no script, no style, nothing from elsewhere."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import jinja2


def render(document: Mapping[str, Any]) -> str:
    """Return the page of a document; texts are escaped."""
    return _template().render(document=document, operations=list(_operations(document)))


def _operations(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield {
                "path": path,
                "method": method.upper(),
                "id": operation["operationId"],
                "tag": operation["tags"][0],
                "summary": operation["summary"],
                "description": operation.get("description", ""),
                "parameters": operation.get("parameters", ()),
                "example": _example(operation),
            }


def _example(operation: Mapping[str, Any]) -> str:
    """Return the example of the answer when all is well; empty where there is none."""
    for status, response in operation["responses"].items():
        found = response.get("content", {}).get("application/json", {}).get("example")
        if status.startswith("2") and found is not None:
            return json.dumps(found, indent=1, ensure_ascii=False)
    return ""


@cache
def _template() -> jinja2.Template:
    loader = jinja2.PackageLoader("api", "templates")
    return jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined).get_template(
        "reference.html"
    )
