"""The configuration hash in events: which settings were in force, without any secret."""

import hashlib

import msgspec

from gnomon.config.model import Settings


def config_hash(settings: Settings) -> str:
    """
    Return 16 hex digits over what decides answers, comparisons and prices.

    Endpoints count as they are displayed, headers by name, client secrets by id, so that the hash says nothing of a
    key: a new key at the same place is the same configuration.
    """
    plain = msgspec.to_builtins(
        {
            "projects": settings.projects,
            "rate_limiters": settings.rate_limiters,
            "shadow": settings.gnomon.shadow,
            "pricing": settings.gnomon.pricing,
        }
    )
    del plain["pricing"]["folder"]
    for project in plain["projects"]:
        for upstream in project["upstreams"]:
            del upstream["endpoint"]
            upstream["headers"] = sorted(upstream["headers"])
        for secret in project["secrets"]:
            del secret["sha256"]
    encoded = msgspec.json.encode(plain, order="sorted")
    return hashlib.sha256(encoded).hexdigest()[:16]
