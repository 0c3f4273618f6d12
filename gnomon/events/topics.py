"""
Where events go: the topic and the key of each type.

| topic                     | key        | events                                 |
| ------------------------- | ---------- | -------------------------------------- |
| `gnomon.responses.v1`     | request id | `primary_response`, `shadow_response`  |
| `gnomon.attempts.v1`      | upstream   | `attempt`                              |
| `gnomon.heads.v1`         | network    | `head_update`, `reorg`                 |
| `gnomon.breakers.v1`      | upstream   | `breaker_transition`                   |

Equal keys keep their order. `comparisons`, `alerts` and `dead_letters` are derived, at least once.
"""

from typing import assert_never

from gnomon.events.contract import (
    AnyEvent,
    BreakerTransition,
    HeadUpdate,
    InternalAttempt,
    PrimaryResponse,
    Reorg,
    ShadowResponse,
)

RESPONSES = "gnomon.responses.v1"
ATTEMPTS = "gnomon.attempts.v1"
HEADS = "gnomon.heads.v1"
BREAKERS = "gnomon.breakers.v1"
COMPARISONS = "gnomon.comparisons.v1"
ALERTS = "gnomon.alerts.v1"
DEAD_LETTERS = "gnomon.dead_letters.v1"

TOPICS = (RESPONSES, ATTEMPTS, HEADS, BREAKERS, COMPARISONS, ALERTS, DEAD_LETTERS)
"""Every topic there is, without the configured prefix (`events.kafka.topicPrefix`)."""


def topic_and_key(event: AnyEvent) -> tuple[str, str]:
    """Return the event's topic, without the configured prefix, and its key within the topic."""
    match event:
        case PrimaryResponse() | ShadowResponse():
            return RESPONSES, event.request_id
        case InternalAttempt():
            return ATTEMPTS, event.attempt.upstream
        case HeadUpdate() | Reorg():
            return HEADS, event.network
        case BreakerTransition():
            return BREAKERS, event.upstream
        case _:
            assert_never(event)


def topic(event: AnyEvent) -> str:
    """Return the event's topic, without the configured prefix."""
    return topic_and_key(event)[0]


def key(event: AnyEvent) -> str:
    """Return the event's key within its topic."""
    return topic_and_key(event)[1]
