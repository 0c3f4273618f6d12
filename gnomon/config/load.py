"""
Load a configuration file into the effective settings, or say everything that is wrong with it.

    text ── source.parse ──► tree with lines ── schema.read_section by keys.SECTIONS ──► values
         ── networks, upstreams, access, services ──► Settings, or ConfigError with every problem
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from gnomon.config import access, networks, services, upstreams
from gnomon.config.errors import ConfigError, Problem
from gnomon.config.findings import Findings
from gnomon.config.fingerprint import config_hash
from gnomon.config.keys import SECTIONS
from gnomon.config.model import PricingSettings, Project, Settings, Upstream
from gnomon.config.schema import nearest, read_section
from gnomon.config.source import lines_by_path, parse
from gnomon.config.values import Values

DEFAULT_FILE = "gnomon.yaml"
MAX_BYTES = 8 << 20

_HOW_TO_MAKE_ONE = """there is no such file. Make one, for example:

    projects:
      - id: main
        upstreams:
          - {id: mine, endpoint: http://127.0.0.1:8545, evm: {chainId: 1}}
          - {id: candidate, endpoint: "https://rpc.example.com", evm: {chainId: 1}, shadow: {enabled: true}}

  then `gnomon config validate FILE`; or name one with --config FILE; or try `gnomon demo`, which needs none"""


def load(
    path: str | os.PathLike[str], *, allow_insecure: bool = False, environment: Mapping[str, str] | None = None
) -> Settings:
    """
    Return the effective settings of a file.

    Args:
        path: YAML (or JSON) in eRPC's shape, with our own settings under `gnomon`.
        allow_insecure: turn errors about missing guards of money or access into warnings.
        environment: where `${NAME}` is looked up; None is this process's environment.

    Raises:
        ConfigError: with all problems; nothing of the file is in force.
    """
    file = Path(path)
    text = _read(file)
    return loads(
        text,
        name=str(file),
        folder=file.parent,
        allow_insecure=allow_insecure,
        environment=os.environ if environment is None else environment,
    )


def loads(
    text: str,
    *,
    name: str = "configuration",
    folder: Path = Path(),
    allow_insecure: bool = False,
    environment: Mapping[str, str],
) -> Settings:
    """Return the effective settings of a text; `folder` is where files that it names are looked up."""
    root, problems = parse(text, environment)
    findings = Findings(allow_insecure=allow_insecure, problems=problems)
    if root is None:
        raise ConfigError(name, problems)
    findings.lines = lines_by_path(root)
    settings = _settings(read_section(SECTIONS["root"], root, findings), folder, findings)
    if findings.problems:
        raise ConfigError(name, _in_order(findings.problems))
    warned = tuple(str(warning) for warning in _in_order(findings.warnings))
    settings = msgspec.structs.replace(settings, warnings=warned)
    return msgspec.structs.replace(settings, config_hash=config_hash(settings))


def _read(file: Path) -> str:
    if file.suffix in (".ts", ".js"):
        raise ConfigError(str(file), [Problem("", "TypeScript and JavaScript are not read: write it as YAML")])
    try:
        if file.stat().st_size > MAX_BYTES:
            raise ConfigError(str(file), [Problem("", f"is larger than {MAX_BYTES >> 20} MiB")])
        return file.read_text("utf-8")
    except FileNotFoundError:
        raise ConfigError(str(file), [Problem("", _HOW_TO_MAKE_ONE)]) from None
    except UnicodeDecodeError as error:
        raise ConfigError(str(file), [Problem("", f"is not UTF-8 (byte {error.start})")]) from error
    except OSError as error:
        raise ConfigError(str(file), [Problem("", f"cannot be read: {error.strerror}")]) from error


def _in_order(problems: list[Problem]) -> list[Problem]:
    unique = dict.fromkeys(problems)
    return sorted(unique, key=lambda problem: problem.line if problem.line is not None else 0)


def _settings(root: Values, folder: Path, findings: Findings) -> Settings:
    if not root.sections("projects"):
        findings.problem("projects", "is missing: at least one project is needed")
    limits = access.budgets(root, findings)
    projects = [_project(values, root, folder, findings) for values in root.sections("projects")]
    _check_unique([(project.id, values.at("id")) for project, values in _pairs(projects, root)], "project", findings)
    for values in root.sections("projects"):
        _check_budgets(values, list(limits), findings)
    ids = [upstream.id for project in projects for upstream in project.upstreams]
    gnomon = services.build(root, ids, folder, findings)
    projects = [_billed(project, values, gnomon.pricing, findings) for project, values in _pairs(projects, root)]
    host = gnomon.proxy.host
    if not services.is_loopback(host):
        for project in projects:
            if not project.secrets and not project.access:
                where = (
                    "gnomon.proxy.host" if "host" in root.section("gnomon").section("proxy") else "server.httpHostV4"
                )
                findings.guard(where, f"{host} lets other machines in and project `{project.id}` has no auth")
    return Settings(
        projects=tuple(projects),
        rate_limiters=limits,
        log_level=root.text("logLevel", "info"),
        gnomon=gnomon,
    )


def _billed(project: Project, values: Values, pricing: PricingSettings, findings: Findings) -> Project:
    """Return the project with each upstream that an account lists billed to it."""
    owners = {upstream: account.id for account in pricing.accounts for upstream in account.upstreams}
    billed = []
    for upstream in project.upstreams:
        owner = owners.get(upstream.id, upstream.account)
        if upstream.account and owner != upstream.account:
            findings.problem(
                f"gnomon.pricing.accounts.{owner}.upstreams",
                f"`{upstream.id}` names the account `{upstream.account}` itself ({values.at('upstreams')})",
            )
        billed.append(msgspec.structs.replace(upstream, account=owner))
    return msgspec.structs.replace(project, upstreams=tuple(billed))


def _pairs(projects: list[Project], root: Values) -> list[tuple[Project, Values]]:
    return list(zip(projects, root.sections("projects"), strict=True))


def _project(values: Values, root: Values, folder: Path, findings: Findings) -> Project:
    upstreams.check_patterns(values, findings)
    name = values.text("id")
    if values.lacks("id"):
        findings.problem(values.at("id"), "is missing")
    elif "/" in name:
        findings.problem(values.at("id"), f"{name!r} cannot be a path: leave out `/`")
    listed = networks.ids(values, findings)
    declared = [network for network, _ in listed if network.startswith("evm:")]
    generic = [network for network, _ in listed if not network.startswith("evm:")]
    before = len(findings.problems)
    drafts = upstreams.drafts(values, declared, generic, findings)
    is_complete = len(findings.problems) == before
    _check_unique([(draft.id, draft.values.at("id")) for draft in drafts], "upstream", findings)
    built: list[Upstream] = [upstreams.build(draft, findings) for draft in drafts]
    deadline = root.section("server").number("maxTimeout", networks.DEADLINE_SECONDS)
    all_networks = [*listed, *networks.implied(values, [network for network, _ in listed], built, findings)]
    networks.check_policies(all_networks, built, findings)
    effective = [networks.build(network, merged, deadline, findings) for network, merged in all_networks]
    if not values.sections("upstreams") and not values.sections("providers"):
        if "upstreams" not in values.wrong:
            findings.problem(values.at("upstreams"), "is missing: nothing could be answered")
    elif is_complete:
        networks.check_served(values, effective, built, findings)
    forwarders = root.section("server").texts("trustedIPForwarders")
    trusted = access.trusted(forwarders, findings)
    secrets, addresses = access.auth(values, trusted, folder, findings)
    return Project(
        id=name,
        networks=tuple(effective),
        upstreams=tuple(built),
        secrets=secrets,
        access=addresses,
        trusted_proxies=trusted,
        rate_limit_budget=values.text("rateLimitBudget"),
        cors=access.cors(values, findings),
        allow_methods=values.texts("allowMethods"),
        ignore_methods=values.texts("ignoreMethods"),
    )


def _check_unique(names: list[tuple[str, str]], what: str, findings: Findings) -> None:
    first: dict[str, str] = {}
    told: set[str] = set()  # an entry that stands for several chains is one slip
    for name, path in names:
        if name and first.setdefault(name, path) != path and path not in told:
            told.add(path)
            findings.problem(path, f"two {what}s are called `{name}`; the other is {first[name]}")


def _check_budgets(values: Values, known: list[str], findings: Findings) -> None:
    for path, name in _named_budgets(values):
        if name not in known:
            findings.problem(path, f"no rate limit budget is called `{name}`{nearest(name, known)}")


def _named_budgets(values: Values) -> Iterator[tuple[str, str]]:
    """Yield the path and name of each `rateLimitBudget` in a project, wherever it stands."""
    if "rateLimitBudget" in values:
        yield values.at("rateLimitBudget"), values.text("rateLimitBudget")
    for value in values.items.values():
        for inner in value if isinstance(value, list) else value.values() if isinstance(value, dict) else [value]:
            if isinstance(inner, Values):
                yield from _named_budgets(inner)
