"""Whether everything that was accepted is stored, once; and what is not."""

from typing import Final

from fastapi import APIRouter

from api.exposed import add_question

router: Final = APIRouter(tags=["reconciliation"])

add_question(router, "/v1/reconciliation", "reconcile")
add_question(router, "/v1/reconciliation/stages", "stages")
add_question(router, "/v1/reconciliation/gaps", "sequence_gaps")
add_question(router, "/v1/reconciliation/dead_letters", "dead_letters")
