"""The questions that pages ask, each under its own name: whoever sees a number on a page can read it here too."""

from typing import Final

from fastapi import APIRouter

from api.exposed import add_question

router: Final = APIRouter(tags=["questions"])

PAGES_ASK: Final = (
    "alert_history", "breaker_history", "divergence_in_steps", "gauges_now", "head_delays", "heads_now",
    "networks", "paid_groups", "paid_today", "prices_in_effect", "request_source", "service_over_time",
    "spend_daily", "spend_in_steps", "traffic_around", "upstream_in_steps", "wasted_by_cause",
)  # fmt: skip
"""Named questions, by name; a test holds that pages ask no other that is not served elsewhere."""

for _name in PAGES_ASK:
    add_question(router, f"/v1/questions/{_name}", _name)
