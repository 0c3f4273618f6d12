"""Where providers diverge: the matrix of method, path and shadow, and what stands around it."""

from typing import Final

from fastapi import APIRouter

from api.exposed import add_question

router: Final = APIRouter(tags=["divergence"])

add_question(
    router,
    "/v1/divergence",
    "differences",
    description="The matrix as rows: a method and path has one for each shadow and class; `n_judged` is what its count "
    "is out of. Methods in which nothing differs are in /v1/divergence/methods.",
)
add_question(router, "/v1/divergence/methods", "compared_by_method")
add_question(router, "/v1/divergence/shadows", "divergence_by_shadow")
add_question(router, "/v1/divergence/pairs", "difference_pairs")
add_question(router, "/v1/divergence/over_time", "difference_over_time")
add_question(router, "/v1/divergence/members", "difference_members")
add_question(router, "/v1/divergence/others", "difference_others")
add_question(router, "/v1/divergence/coverage", "shadow_coverage")
