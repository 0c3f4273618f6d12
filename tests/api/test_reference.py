"""/docs: every route for people, without a script."""

from api import reference
from api.app import document
from tests.api.calling import Api, FakeReader


def test_every_route_is_on_the_page() -> None:
    """With its summary; no token is needed."""
    answer = Api(FakeReader(RuntimeError("asked"))).get("/docs")
    page = answer.body.decode()

    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    for path, operations in document()["paths"].items():
        for method in operations:
            assert f"<code>{method.upper()} {path}</code>" in page
    assert "<script" not in page
    assert "style=" not in page


def test_texts_are_escaped() -> None:
    """Whatever the document says."""
    operation = {
        "operationId": "x", "tags": ["t"], "summary": "<script>alert(1)</script>",
        "responses": {"200": {"content": {"application/json": {"example": {"a": "<b>"}}}}},
    }  # fmt: skip
    page = reference.render(
        {
            "info": {"title": "T", "description": "<i>"},
            "tags": [{"name": "t", "description": ""}],
            "paths": {"/x": {"get": operation}},
        }
    )

    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "&lt;b&gt;" in page
