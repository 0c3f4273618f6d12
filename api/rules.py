"""Which masks and tolerances hold for a pair: of the chain's family, of the configuration, of a request."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gnomon.compare import masks, presets, tolerances
from gnomon.config.model import ANY_METHOD, Settings, Upstream

Source = Literal["preset", "configuration", "request"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A mask or a tolerance, in its one spelling."""

    text: str
    source: Source
    is_on: bool
    """Whether it holds in the verdict that is asked for."""


def masks_in_force(settings: Settings, network: str, method: str, shadow: str) -> list[Rule]:
    """Return the masks that new pairs of a shadow are judged with."""
    found = [Rule(mask_spelling(text), "preset", True) for text in presets.masks_of(network, method)]
    for upstream in _shadows(settings, network, shadow):
        assert upstream.shadow is not None
        for text in upstream.shadow.ignore_fields.get(method, ()):
            found.append(Rule(mask_spelling(text), "configuration", True))
    return _once(found)


def tolerances_in_force(settings: Settings, network: str, method: str, shadow: str) -> list[Rule]:
    """Return the tolerances that new pairs of a shadow are judged with."""
    by_method = [settings.gnomon.shadow.tolerate]
    by_method += [one.shadow.tolerate for one in _shadows(settings, network, shadow) if one.shadow is not None]
    texts = [text for one in by_method for key in (ANY_METHOD, method) for text in one.get(key, ())]
    return _once([Rule(tolerance_spelling(text), "configuration", True) for text in texts])


def chosen(in_force: Sequence[Rule], asked: Sequence[str] | None) -> list[Rule]:
    """
    Return the rules to show: those in force, on where they are asked for, and the asked ones that are new.

    Args:
        in_force: without any asked, all of them are on.
        asked: in their one spelling; None: as they are in force.
    """
    if asked is None:
        return list(in_force)
    known = {rule.text for rule in in_force}
    return [
        *(Rule(rule.text, rule.source, rule.text in asked) for rule in in_force),
        *_once([Rule(text, "request", True) for text in asked if text not in known]),
    ]


def mask_spelling(text: str) -> str:
    """
    Return the one spelling of a mask.

    Raises:
        MaskError: it is none.
    """
    return masks.show(masks.parse(text))


def tolerance_spelling(text: str) -> str:
    """
    Return the one spelling of a tolerance.

    Raises:
        ToleranceError, MaskError: it is none.
    """
    return tolerances.compile([text]).texts[0]


def mask_version(network: str, method: str, mask_set: masks.MaskSet) -> str:
    """Return the version that a verdict by these masks stores: with the preset's where all of the preset holds."""
    preset = {mask_spelling(text) for text in presets.masks_of(network, method)}
    is_whole = preset and preset <= set(mask_set.masks)
    return f"{mask_set.version}+{presets.VERSION}" if is_whole else mask_set.version


def _shadows(settings: Settings, network: str, shadow: str) -> list[Upstream]:
    return [
        upstream
        for project in settings.projects
        for upstream in project.upstreams
        if upstream.id == shadow and upstream.network == network and upstream.shadow is not None
    ]


def _once(rules: Sequence[Rule]) -> list[Rule]:
    found: dict[str, Rule] = {}
    for rule in rules:
        found.setdefault(rule.text, rule)
    return list(found.values())
