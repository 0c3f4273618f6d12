"""
The reference of all settings, made from the list that the reader uses.

    python -m gnomon.config.reference > docs/configuration.md
"""

import sys

from gnomon.config.keys import SECTIONS
from gnomon.config.pending import PENDING
from gnomon.config.schema import Key, Section
from gnomon.config.vendors import VENDORS

_HEAD = """\
# Configuration

One YAML file (JSON is YAML), by default `gnomon.yaml`, in the shape of eRPC for what both have, with Gnomon's own
settings under `gnomon:`. The smallest one:

```yaml
projects:
  - id: main
    upstreams:
      - {id: mine, endpoint: http://127.0.0.1:8545, evm: {chainId: 1}}
      - {id: candidate, endpoint: "https://rpc.example.com", evm: {chainId: 1}, shadow: {enabled: true}}
```

`gnomon config validate FILE` reports every problem at once, each with its line and path. `gnomon config dump FILE`
prints the settings in force with secrets masked, as a file that loads again and means the same.

* **Unknown keys are errors**, with the nearest known key. A part of eRPC that has no effect here is a named warning
  where leaving it out is harmless, and an error where it guards money or access; `--allow-insecure` turns these
  errors, and no others, into warnings.
* **Environment.** `${NAME}` and `$NAME` are replaced by the variable; one that is not set is an error. `$$` is a
  dollar sign.
* **Patterns** of methods (`matchMethod`, `allowMethods`, `ignoreMethods`) are names in which `*` stands for any text
  and `?` for a character, joined by `|`, `&`, `!` and parentheses.
* **A policy in JavaScript** (`evalFunction`) is not run, `mode` chooses. It is an error where it may be what keeps
  calls from upstreams that cost money: some primaries of its network are a vendor's or of a tier that has no meaning
  here, others are not, and `mode` is not said.
* **WebSocket endpoints** (`ws(s)://`) give heads by subscription and are never called: as in eRPC each is an upstream
  of its own, beside the `http(s)://` one of the same node.
* **Durations** are a number with a unit, `500ms`, `5s`, `1m30s`, also `d`, `w`, `y`. **Sizes** are bytes, or a
  number with a unit, `64MiB`, `1GB`. **Switches** are `true`, `yes`, `on`, `false`, `no`, `off`.
* **YAML 1.1 traps.** A key given twice and a whole number with a leading zero are errors; `off` is text where text
  is wanted.
* **Inheritance.** `upstreamDefaults` and `networkDefaults` hold where an entry says nothing; an explicit `false` or
  0 wins; lists replace as a whole.
* **Networks** need not be listed: each chain that an upstream names is one. A generic network is `{architecture:
  jsonrpc, id: hive}`, and its upstreams say `network: hive`.
* **Tiers.** No tag: primary. `tags: ["tier:fallback"]`: paid fallback. `shadow: {enabled: true}`: mirrored to,
  never served.
"""

_USES = {
    "ignored": "no effect: {}",
    "guard": "error unless `--allow-insecure`: {}",
    "later": "error: {}",
    "retired": "error: {}",
}


def render() -> str:
    """Return the whole page, Markdown."""
    parts = [_HEAD, _vendors()]
    parts += [_section(section) for section in SECTIONS.values()]
    return "\n".join(parts)


def _vendors() -> str:
    lines = [
        "## Vendors",
        "",
        "`vendor` is known by scheme or host; the first ones also expand `NAME://KEY` and `providers:`.",
        "",
    ]
    for vendor in VENDORS.values():
        chains = ", ".join(str(chain) for chain in vendor.chains())
        names = ", ".join(f"`{scheme}`" for scheme in (vendor.name, *vendor.schemes))
        lines.append(f"* {names}: " + (f"chains {chains}" if vendor.endpoint else f"full URL only ({vendor.note})"))
    return "\n".join([*lines, ""])


def _section(section: Section) -> str:
    lines = [f"## {section.title}", "", "| key | value | default | what it does |", "| --- | --- | --- | --- |"]
    lines += [_row(section, key) for key in section.keys if key.use == "used"]
    others = [key for key in section.keys if key.use != "used"]
    if others:
        lines.append("")
        lines += [f"* `{key.name}`: {_USES[key.use].format(key.text)}" for key in others]
    return "\n".join([*lines, ""])


def _row(section: Section, key: Key) -> str:
    text = key.text + (f" 0: {key.zero}." if key.zero else "")
    pending = PENDING.get((section.name, key.name))
    if pending is not None:
        text += f" **Not in force yet**: {pending.message}" + (
            " (error)." if pending.weight == "guard" else " (warning)."
        )
    cells = (f"`{key.name}`", key.kind.label, key.default, text)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    sys.stdout.write(render())
