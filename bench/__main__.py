"""Run every benchmark of this folder, one after the other, or the one that is named with its own arguments."""

import ast
import pkgutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path


def names() -> list[str]:
    """Return the benchmarks: the public modules of this folder, with hyphens."""
    found = (module.name.replace("_", "-") for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return sorted(name for name in found if not name.startswith("-"))


def described() -> str:
    """Return each name with the first sentence of its benchmark; none of them is imported."""
    width = max(map(len, names()))
    return "".join(f"  {name:<{width}}  {_first_line(name)}\n" for name in names())


def _first_line(name: str) -> str:
    spec = find_spec(f"bench.{name.replace('-', '_')}")
    source = Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else ""
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


def main(arguments: list[str]) -> int:
    """Return 0 when each benchmark ended well, else 1; 2 for an unknown name."""
    known = names()
    if arguments and arguments[0] in ("-h", "--help"):
        usage = "usage: python -m bench [NAME [ARGUMENT…]]; without NAME all of them"
        print(f"{usage}\n\n{described()}\nArguments of one: python -m bench NAME --help")
        return 0
    if arguments and arguments[0] not in known:
        print(f"bench: no benchmark is called {arguments[0]!r}; known: {', '.join(known)}", file=sys.stderr)
        return 2
    failed = []
    for name in arguments[:1] or known:
        print(f"== {name}", flush=True)
        if subprocess.run(
            [sys.executable, "-m", f"bench.{name.replace('-', '_')}", *arguments[1:]], check=False
        ).returncode:
            failed.append(name)
    if failed:
        print(f"bench: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
