"""What is in force: made from the configuration as a whole, and replaced as a whole when it is read again."""

from dataclasses import dataclass
from pathlib import Path

from analytics.alerting.rules import Rule, configured
from api import access
from api.access import Access
from gnomon.config.model import ApiSettings, Settings


@dataclass(frozen=True, slots=True)
class InForce:
    """One configuration, with what is read from files that it names."""

    settings: Settings
    access: Access
    rules: tuple[Rule, ...]

    @property
    def api(self) -> ApiSettings:
        return self.settings.gnomon.api


class Holder:
    """The configuration in force; `value` is read anew at each use."""

    def __init__(self, value: InForce) -> None:
        self.value = value


def in_force(settings: Settings) -> InForce:
    """
    Return what a configuration puts in force. Reads the files of tokens and alert rules.

    Raises:
        UsageError: one of them cannot be used.
    """
    alerts = settings.gnomon.alerts
    names = [str(receiver.get("name")) for receiver in alerts.receivers]
    return InForce(
        settings, access.read(settings.gnomon.api.tokens), configured(alerts.rules, Path(alerts.folder), names)
    )
