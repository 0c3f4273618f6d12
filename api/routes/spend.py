"""What was spent, why, on whom, and where it will end."""

from typing import Final

from fastapi import APIRouter

from api.exposed import add_question

router: Final = APIRouter(tags=["spend"])

add_question(router, "/v1/spend", "spend_by_cause")
add_question(router, "/v1/spend/by_method", "spend_by_method")
add_question(router, "/v1/spend/by_upstream", "spend_by_upstream")
add_question(router, "/v1/spend/by_user", "spend_by_user")
add_question(router, "/v1/spend/over_time", "spend_over_time")
add_question(router, "/v1/spend/waste", "waste")
add_question(router, "/v1/spend/paid_share", "paid_share")
add_question(router, "/v1/spend/cost_per_million", "cost_per_million")
add_question(router, "/v1/spend/saved_by_fallbacks", "saved_by_fallbacks")
add_question(router, "/v1/spend/own_calls", "own_calls")
add_question(router, "/v1/spend/unpriced", "unpriced")
add_question(router, "/v1/spend/why_spend_rose", "why_spend_rose")
add_question(router, "/v1/budgets", "budgets", description="Accounts and budgets are those of gnomon.pricing.accounts.")
