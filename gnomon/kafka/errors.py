"""
What can go wrong between us and a Kafka cluster.

    GnomonError
    ├── UsageError
    │   └── KafkaSettingsWrong  gnomon.events.kafka cannot be used as it is
    └── KafkaError
        ├── KafkaAway           no broker answers, or not in time: try again
        ├── KafkaRefused        the cluster says no, to who we are or what we ask: a person decides
        ├── TopicsMissing       `gnomon migrate` was not run, or with another prefix
        └── TopicsUnfit         topics are there with settings that would lose events
"""

from collections.abc import Sequence

from gnomon.errors import GnomonError, UsageError


class KafkaSettingsWrong(UsageError):
    """The configuration of Kafka cannot be used."""


class KafkaError(GnomonError):
    """Something about the cluster; the message names its address."""


class KafkaAway(KafkaError):
    """No broker answers."""


class KafkaRefused(KafkaError):
    """A broker has answered, with no."""


class TopicsMissing(KafkaError):
    """Topics that there must be are not there."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"no Kafka topic {', '.join(names)}: run `gnomon migrate`")
        self.names = tuple(names)


class TopicsUnfit(KafkaError):
    """Topics are there that would lose events."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("Kafka topics that would lose events:\n  " + "\n  ".join(problems))
        self.problems = tuple(problems)
