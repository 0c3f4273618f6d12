"""Heads, reorgs, breakers and holds."""

from typing import Final

from fastapi import APIRouter

from api.exposed import add_question

router: Final = APIRouter(tags=["heads and breakers"])

add_question(router, "/v1/heads", "head_lag")
add_question(router, "/v1/heads/changes", "head_changes")
add_question(router, "/v1/heads/lag_in_steps", "head_lag_in_steps")
add_question(router, "/v1/reorgs", "reorgs")
add_question(router, "/v1/breakers", "breakers")
add_question(router, "/v1/breakers/changes", "breaker_changes")
