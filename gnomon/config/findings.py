"""What the reading of a file has found so far: problems and warnings, each with its place."""

from dataclasses import dataclass, field

from gnomon.config.errors import Problem


@dataclass(slots=True)
class Findings:
    """What a walk has found so far."""

    allow_insecure: bool = False
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)

    def problem(self, path: str, message: str) -> None:
        self.problems.append(Problem(path, message, self.line(path)))

    def warn(self, path: str, message: str) -> None:
        self.warnings.append(Problem(path, message, self.line(path)))

    def guard(self, path: str, message: str) -> None:
        """Note what protects money or access and is not in force: a problem, unless `--allow-insecure`."""
        if self.allow_insecure:
            self.warn(path, f"ignored by --allow-insecure: {message}")
        else:
            self.problem(path, f"{message} (--allow-insecure ignores it)")

    def line(self, path: str) -> int | None:
        """Return the line of the path, or of the nearest part of it that is in the file."""
        while path:
            if path in self.lines:
                return self.lines[path]
            cut = max(path.rfind("."), path.rfind("["))
            path = path[:cut] if cut > 0 else ""
        return None
