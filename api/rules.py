"""Which masks and tolerances hold for a pair: of the chain's family, of the configuration, of a request."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

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


@dataclass(frozen=True, slots=True)
class Stated:
    """A mask or a tolerance as it is in force for a shadow, in its one spelling."""

    text: str
    setting: str
    """That has it; `preset`: the table of the chain's family."""


def stated_masks(upstream: Upstream, method: str) -> list[Stated]:
    """Return the masks of one shadow and method; `*`: what holds for methods without any of their own."""
    found = _preset(upstream.network, method)
    if upstream.shadow is not None:
        found += [
            Stated(mask_spelling(t), "shadow.ignoreFields") for t in upstream.shadow.ignore_fields.get(method, ())
        ]
    return _once(found)


def stated_tolerances(settings: Settings, upstream: Upstream | None, method: str) -> list[Stated]:
    """Return the tolerances of one shadow and method; without a shadow, those of the installation."""
    places = [("gnomon.shadow.tolerate", settings.gnomon.shadow.tolerate)]
    if upstream is not None and upstream.shadow is not None:
        places.append(("shadow.tolerate", upstream.shadow.tolerate))
    return _once(
        [
            Stated(tolerance_spelling(text), setting)
            for setting, by_method in places
            for name in (ANY_METHOD, method)
            for text in by_method.get(name, ())
        ]
    )


def masks_in_force(settings: Settings, network: str, method: str, shadow: str) -> list[Rule]:
    """Return the masks that new pairs of a shadow are judged with."""
    found = _preset(network, method)
    for upstream in _shadows(settings, network, shadow):
        found += stated_masks(upstream, method)
    return [_rule(one) for one in _once(found)]


def tolerances_in_force(settings: Settings, network: str, method: str, shadow: str) -> list[Rule]:
    """Return the tolerances that new pairs of a shadow are judged with."""
    found = stated_tolerances(settings, None, method)
    for upstream in _shadows(settings, network, shadow):
        found += stated_tolerances(settings, upstream, method)
    return [_rule(one) for one in _once(found)]


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


def _preset(network: str, method: str) -> list[Stated]:
    return [Stated(mask_spelling(text), "preset") for text in presets.masks_of(network, method)]


def _rule(one: Stated) -> Rule:
    return Rule(one.text, "preset" if one.setting == "preset" else "configuration", True)


Said = TypeVar("Said", Rule, Stated)


def _once(rules: Sequence[Said]) -> list[Said]:
    """Return each text once, as it came first."""
    found: dict[str, Said] = {}
    for rule in rules:
        found.setdefault(rule.text, rule)
    return list(found.values())
