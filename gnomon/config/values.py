"""The values of one mapping, as the walk over a file has read them."""

from dataclasses import dataclass, field

from gnomon.config.model import ANY_METHOD
from gnomon.config.source import join


@dataclass(slots=True)
class Values:
    """The keys of one mapping that were given and are well formed."""

    path: str
    items: dict[str, object] = field(default_factory=dict)
    wrong: set[str] = field(default_factory=set)
    """Keys that were given with a value that has been reported."""

    def __contains__(self, name: str) -> bool:
        return name in self.items

    def at(self, name: str) -> str:
        """Return the path of a member, or by dots of a member of a member."""
        path = self.path
        for part in name.split("."):
            path = join(path, part)
        return path

    def lacks(self, name: str) -> bool:
        """Return whether a key was not given at all, not even wrongly."""
        return name not in self.items and name not in self.wrong

    def text(self, name: str, default: str = "") -> str:
        value = self.items.get(name, default)
        assert isinstance(value, str)
        return value

    def integer(self, name: str, default: int = 0) -> int:
        value = self.items.get(name, default)
        assert isinstance(value, int)
        return value

    def number(self, name: str, default: float = 0.0) -> float:
        value = self.items.get(name, default)
        assert isinstance(value, int | float)
        return float(value)

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.items.get(name, default)
        assert isinstance(value, bool)
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.items.get(name, ())
        assert isinstance(value, list | tuple)
        return tuple(str(item) for item in value)

    def text_map(self, name: str) -> dict[str, str]:
        value = self.items.get(name, {})
        assert isinstance(value, dict)
        return {str(key): str(item) for key, item in value.items()}

    def texts_map(self, name: str) -> dict[str, tuple[str, ...]]:
        value = self.items.get(name, {})
        assert isinstance(value, dict)
        return {str(key): tuple(str(one) for one in item) for key, item in value.items()}

    def by_method(self, name: str) -> dict[str, tuple[str, ...]]:
        """Return a mapping of methods to texts; a plain list stands under ANY_METHOD."""
        value = self.items.get(name, {})
        return self.texts_map(name) if isinstance(value, dict) else {ANY_METHOD: self.texts(name)}

    def section(self, name: str) -> "Values":
        value = self.items.get(name)
        if value is None:
            return Values(self.at(name))
        assert isinstance(value, Values)
        return value

    def sections(self, name: str) -> "list[Values]":
        value = self.items.get(name, [])
        assert isinstance(value, list)
        return [item for item in value if isinstance(item, Values)]

    def section_map(self, name: str) -> "dict[str, Values]":
        value = self.items.get(name, {})
        assert isinstance(value, dict)
        return {str(key): item for key, item in value.items() if isinstance(item, Values)}

    def over(self, defaults: "Values") -> "Values":
        """
        Return these values, with those of `defaults` where a key is missing; sections merge key by key.

        An explicit value always wins, `false` and 0 included. Lists replace as a whole.
        """
        merged = dict(defaults.items)
        for name, value in self.items.items():
            other = merged.get(name)
            merged[name] = value.over(other) if isinstance(value, Values) and isinstance(other, Values) else value
        return Values(self.path, merged, self.wrong | defaults.wrong)
