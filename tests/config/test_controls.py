"""Control shadows: entries without an endpoint."""

import pytest

from gnomon.config.errors import ConfigError
from tests.config.test_load import ONE, upstream, with_upstreams

CONTROL = "{id: c, shadow: {enabled: true, control: true}}"
GENERIC = "{id: h, network: hive, endpoint: 'http://127.0.0.1:1'}"


@pytest.mark.parametrize(
    ("others", "networks", "control", "expected"),
    [
        ([ONE], "", CONTROL, "evm:1"),
        ([ONE], "", CONTROL.replace("id: c", "id: c, network: 'evm:1'"), "evm:1"),
        ([ONE], "", CONTROL.replace("id: c", "id: c, evm: {chainId: 1}"), "evm:1"),
        ([GENERIC], "[{architecture: jsonrpc, id: hive}]", CONTROL, "hive"),
        (
            [ONE, GENERIC],
            "[{architecture: jsonrpc, id: hive}]",
            CONTROL.replace("id: c", "id: c, network: hive"),
            "hive",
        ),
    ],
)
def test_a_control_needs_no_endpoint(others: list[str], networks: str, control: str, expected: str) -> None:
    """It asks whoever has served; the project's only network is its own where none is named."""
    found = upstream(with_upstreams(*others, control, networks=networks), "c")

    assert (found.network, found.tier, found.endpoint) == (expected, "shadow", "")
    assert found.shadow is not None
    assert found.shadow.control


def test_the_endpoint_of_a_control_is_told_to_be_of_no_use() -> None:
    own = ONE.replace("id: a", "id: c").replace("}}", "}, shadow: {enabled: true, control: true}}")
    settings = with_upstreams(ONE, own)

    assert any("a control asks the upstream that served" in warning for warning in settings.warnings)


@pytest.mark.parametrize(
    ("control", "message"),
    [
        (CONTROL, "no endpoint that tells its chain"),
        (CONTROL.replace("id: c", "id: c, network: hive"), "no network is called"),
        ("{id: c, shadow: {enabled: true}}", "endpoint: is missing"),
        ("{id: c, shadow: {control: true}}", "endpoint: is missing"),
    ],
)
def test_who_needs_to_say_more_is_told(control: str, message: str) -> None:
    other = ONE.replace("id: a", "id: b").replace("chainId: 1", "chainId: 10")
    with pytest.raises(ConfigError, match=message):
        with_upstreams(ONE, other, control)


@pytest.mark.parametrize("routing", ["{probePerSecond: -1}", "{probeConcurrency: 0}", "{probe: often}"])
def test_bounds_of_probes_make_sense(routing: str) -> None:
    with pytest.raises(ConfigError, match="probe"):
        with_upstreams(ONE.replace("}}", f"}}, routing: {routing}}}"))
