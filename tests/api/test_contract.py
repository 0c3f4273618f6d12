"""Requests made up from the document (schemathesis): each is answered as the document says, whatever it holds."""

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import CheckFunction, not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from api.access import Access, Caller, Token
from api.app import document
from api.reader import Reader
from gnomon.config.model import ClickHouseSettings
from tests.api.calling import Api, settings_of
from tests.api.listening import listening
from tests.ingest.engine_process import EngineProcess

pytestmark = pytest.mark.clickhouse

CHECKS: list[CheckFunction] = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_headers_conformance,
    response_schema_conformance, negative_data_rejection, unsupported_method,
]  # fmt: skip
"""
All that ask whether an answer is what the document says. Left out: `positive_data_acceptance`, for a range whose end
lies before its beginning and a silence of the past fit the schema and are refused.
"""


@pytest.fixture(scope="module")
def served(filled: EngineProcess) -> Iterator[str]:
    """The application on a port, over a filled store, with an admin's token."""
    reader = Reader(ClickHouseSettings(url=filled.url), n_connections=4, query_seconds=20)
    gnomon = f"{{clickhouse: {{url: '{filled.url}'}}, api: {{limits: {{requestsPerSecond: 0}}}}}}"
    access = Access([Token(Caller("ann", "admin"), hashlib.sha256(b"ann").digest())])
    api = Api(reader, settings_of(gnomon), access, filled.folder)
    api.services.live.longest_seconds = 0.2  # a stream has an end here, so that it can be read to it
    with listening(api) as url:
        yield url
    reader.close()


@pytest.fixture(scope="module")
def schema(served: str) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"{served}/openapi.json")


CASES = [
    pytest.param(path, method, mode, id=f"{method} {path} {mode.value}")
    for path, operations in document()["paths"].items()
    for method, operation in operations.items()
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    if mode == GenerationMode.POSITIVE or (path.startswith("/v1/") and {"parameters", "requestBody"} & set(operation))
]
"""Each operation with requests that fit the document, and with ones that do not where something can be wrong."""


@pytest.mark.parametrize(("path", "method", "mode"), CASES)
def test_an_answer_is_what_the_document_says(
    schema: schemathesis.BaseSchema, path: str, method: str, mode: GenerationMode
) -> None:
    """Status, type and members; what does not fit is refused, nothing is a server's error."""
    operation = schema[path][method.upper()]

    @settings(
        max_examples=12,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        case.call_and_validate(checks=CHECKS, headers={"Authorization": "Bearer ann"})

    check()
