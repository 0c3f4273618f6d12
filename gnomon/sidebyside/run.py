"""Asks two endpoints the same questions and judges each pair of answers."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
import msgspec

from gnomon.compare import masks as compiler
from gnomon.compare import presets
from gnomon.compare.judge import Answer, Policy, Question, judge
from gnomon.rpc import blocks, methods
from gnomon.sidebyside.client import Client, Pace, Reply
from gnomon.sidebyside.errors import EndpointFailed, SideBySideError
from gnomon.sidebyside.heads import MARGIN_BLOCKS, Common, Heads, read_common
from gnomon.sidebyside.history import find_parting
from gnomon.sidebyside.report import Report, parted
from gnomon.sidebyside.requests import Requests
from gnomon.sidebyside.sampling import Ask, Sampler, spread

SAMPLED_BLOCKS: Final = 1024
"""How far back a sample reaches where no range is given."""
LANES: Final = 3
"""Blocks that are looked at side by side, so that one slow answer does not hold up the rest."""
HEADS_SECONDS: Final = 2.0
"""How old the heads may be by which a question at a moving tag is judged."""
_LEADING: Final = frozenset({"eth_getBlockByNumber", "eth_getLogs", "debug_traceTransaction"})
"""Methods whose answers lead to further questions."""
_STATE: Final = frozenset(
    {"eth_getBalance", "eth_getTransactionCount", "eth_getCode", "eth_getStorageAt", "eth_getProof"}
)
"""What logs and prestates lead to."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to ask, how hard, and what to forgive."""

    seconds: float = 60.0
    """No question is begun after this."""
    first: int | None = None
    last: int | None = None
    methods: frozenset[str] = frozenset()
    """Empty: all."""
    masks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By method; they add to the preset of the chain's family."""
    has_presets: bool = True
    requests: Requests | None = None
    """None: the chain is sampled."""
    pace: Pace = field(default_factory=Pace)
    margin: int = MARGIN_BLOCKS


class Comparison:
    """
    One run over two endpoints.

    Args:
        say: takes a line for a person, as things become known.
        show: called after each pair, for a progress line.
        stop: set it and the run ends after the questions in flight.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        primary_url: str,
        shadow_url: str,
        options: Options,
        *,
        say: Callable[[str], None],
        show: Callable[[Report], None],
        stop: asyncio.Event,
    ) -> None:
        self._options = options
        self._primary = Client(session, primary_url, options.pace)
        self._shadow = Client(session, shadow_url, options.pace)
        self._say = say
        self._show = show
        self._stop = stop
        self._primary.stop = self._shadow.stop = stop
        self._gate = asyncio.Semaphore(options.pace.concurrency)
        self._end = float("inf")
        self._heads_at = 0.0
        self._policies: dict[str, Policy] = {}
        self._common = Common(0, 0, 0, "")
        self._heads = (Heads(0, 0, None, ""), Heads(0, 0, None, ""))
        self.report = Report(self._primary.display, self._shadow.display)

    async def run(self) -> Report:
        """
        Return the report.

        Raises:
            EndpointFailed: an endpoint does not answer.
            SideBySideError: the endpoints serve different chains, or nothing is final at both.
        """
        await self._read_heads()
        a, b = self._heads
        self._say(f"primary  {self._primary.display}  {a.version}, block {a.latest}")
        self._say(f"shadow   {self._shadow.display}  {b.version}, block {b.latest}")
        self._say(
            f"chain {self._common.chain_id}; common final block {self._common.final} ({self._common.explanation})"
        )
        family = presets.family_of(f"evm:{self._common.chain_id}")
        if self._options.has_presets and family != "generic":
            self._say(f"masks of the {family} family apply (preset {presets.VERSION}); --no-presets leaves them out")
        self.report.parting = await find_parting(self._primary, self._shadow, self._common.final)
        if self.report.parting is not None:
            self._say(parted(self.report.parting))
        self._end = time.monotonic() + self._options.seconds
        self._primary.ends_at = self._shadow.ends_at = self._end
        if self._options.requests is not None:
            await self._ask_file(self._options.requests)
        else:
            await self._sample()
        return self.report

    async def _read_heads(self) -> None:
        self._common, *heads = await read_common(self._primary, self._shadow, self._options.margin)
        self._heads = (heads[0], heads[1])
        self._heads_at = time.monotonic()

    @property
    def _is_over(self) -> bool:
        return self._stop.is_set() or time.monotonic() >= self._end

    # --- questions from a file ---------------------------------------------------------------------------------------

    async def _ask_file(self, requests: Requests) -> None:
        wanted = self._options.methods
        asks = [ask for ask in requests.asks if not wanted or ask.method in wanted]
        if requests.left_out:
            self._say(f"left out: {len(requests.left_out)} requests ({', '.join(sorted(set(requests.left_out)))})")
        if requests.n_repeated:
            self._say(f"{requests.n_repeated} requests repeat others to the byte and are asked once")
        if requests.n_other:
            self._say(f"{requests.n_other} messages of the recording are no JSON-RPC")
        size = self._options.pace.concurrency * 8
        for start in range(0, len(asks), size):
            if self._is_over:
                self._say(f"stopped after {self.report.requests} of {len(asks)} requests")
                return
            if time.monotonic() - self._heads_at > HEADS_SECONDS:
                await self._read_heads()
            await self._pairs(asks[start : start + size])

    # --- a sample of the chain ---------------------------------------------------------------------------------------

    async def _sample(self) -> None:
        first, last = self._range()
        self._say(f"sampling blocks {first} to {last}, state at block {self._common.final}")
        sampler = Sampler(self._common.final, first)
        await self._pairs(self._wanted(sampler.opening()))
        heights = spread(first, last)
        async with asyncio.TaskGroup() as group:
            for _ in range(LANES):
                group.create_task(self._sample_heights(sampler, heights))

    async def _sample_heights(self, sampler: Sampler, heights: Iterator[int]) -> None:
        """Take heights until there are none left, each with all that follows from its block."""
        for height in heights:
            asks = [sampler.block(height)]
            while asks and not self._is_over:
                answers = await self._pairs(asks)
                following: list[Ask] = []
                for ask, pair in answers:
                    following += self._following(sampler, ask, pair)
                asks = self._wanted(following)
            if self._is_over:
                return

    def _range(self) -> tuple[int, int]:
        final, options = self._common.final, self._options
        last = final if options.last is None else options.last
        if last > final:
            self._say(f"block {last} is not final at both: sampling ends at {final}")
            last = final
        first = max(0, last - SAMPLED_BLOCKS + 1) if options.first is None else options.first
        if first > last:
            raise SideBySideError(f"no block to sample: from {first} to {last} (common final block {final})")
        return first, last

    def _wanted(self, asks: list[Ask]) -> list[Ask]:
        """Leave out what was not asked for, unless its answer leads to something that was."""
        wanted = self._options.methods
        leads = _LEADING - {"eth_getBlockByNumber"} if wanted & _STATE else frozenset()
        return [ask for ask in asks if not wanted or ask.method in wanted or ask.method in leads]

    def _following(self, sampler: Sampler, ask: Ask, pair: tuple[Reply, Reply]) -> list[Ask]:
        """Return the questions to which one pair of answers leads; either side's answer will do."""
        if ask.method not in _LEADING:
            return []
        results = [_decoded(reply) for reply in pair]
        result = next((r for r in results if r), None)
        if ask.method == "eth_getBlockByNumber" and isinstance(result, dict) and ask.params.endswith(b",true]"):
            a, b = results
            same = isinstance(a, dict) and isinstance(b, dict) and a.get("hash") == b.get("hash")
            return sampler.after_block(result, same)
        if ask.method == "eth_getLogs" and isinstance(result, list):
            return sampler.after_logs(result)
        if ask.family.endswith("prestateTracer") and isinstance(result, dict):
            return sampler.after_prestate(result)
        return []

    # --- pairs -------------------------------------------------------------------------------------------------------

    async def _pairs(self, asks: list[Ask]) -> list[tuple[Ask, tuple[Reply, Reply]]]:
        """Ask and judge some questions side by side; return those that were asked, in order."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._pair(ask)) for ask in asks]
        answers = [(ask, task.result()) for ask, task in zip(asks, tasks, strict=True)]
        return [(ask, pair) for ask, pair in answers if pair is not None]

    async def _pair(self, ask: Ask) -> tuple[Reply, Reply] | None:
        async with self._gate:
            is_sampled = self._options.requests is None
            if self._is_over or (is_sampled and ask.family in self.report.unserved):
                return None
            a, b = await asyncio.gather(
                self._primary.ask_in_time(ask.method, ask.params), self._shadow.ask_in_time(ask.method, ask.params)
            )
            if a is None or b is None:
                return None
            pair = a, b
            wanted = self._options.methods
            if not wanted or ask.method in wanted:
                await self._judge(ask, pair)
        return pair

    async def _judge(self, ask: Ask, pair: tuple[Reply, Reply]) -> None:
        common, (a, b) = self._common, self._heads
        question = Question(
            network=f"evm:{common.chain_id}",
            method=ask.method,
            params=ask.params,
            latest=common.latest,
            finalized=common.final,
            primary_head=a.latest,
            shadow_head=b.latest,
        )
        verdict = judge(question, _answer(pair[0]), _answer(pair[1]), self._policy(ask.method))
        is_final = ask.is_final or verdict.finality == "finalized"
        if verdict.outcome == "mismatch" and not is_final and verdict.finality == "unknown":
            is_final = await self._is_final_by_hash(ask)
        who = [name for name, reply in zip(("primary", "shadow"), pair, strict=True) if _is_unserved(reply)]
        self.report.add(ask, verdict, is_final=is_final, unserved_by=" and ".join(who))
        for name, reply in zip(("primary", "shadow"), pair, strict=True):
            if reply.kind == "none":
                self.report.silences[f"{name} gave no answer: {reply.fragment.decode(errors='replace')}"] += 1
        self._show(self.report)

    def _policy(self, method: str) -> Policy:
        """Return what does not count for a method: the family's masks and the user's."""
        policy = self._policies.get(method)
        if policy is None:
            preset = presets.masks_of(f"evm:{self._common.chain_id}", method) if self._options.has_presets else ()
            policy = Policy(masks=compiler.compile([*preset, *self._options.masks.get(method, ())]))
            self._policies[method] = policy
        return policy

    async def _is_final_by_hash(self, ask: Ask) -> bool:
        """Return whether a question about a block or a transaction by its hash speaks of a final block."""
        try:
            params = msgspec.json.decode(ask.params)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        subject = params[0] if isinstance(params, list) and params else None
        reference = blocks.request_block(methods.lookup(ask.method), params)
        try:
            if reference.hash:
                found = await self._primary.result("eth_getBlockByHash", reference.hash, False)
                number = found.get("number") if isinstance(found, dict) else None
            elif isinstance(subject, str) and len(subject) == 66:
                found = await self._primary.result("eth_getTransactionByHash", subject)
                number = found.get("blockNumber") if isinstance(found, dict) else None
            else:
                return False
        except EndpointFailed:
            return False
        height = blocks.parse_number(number)
        return height is not None and height <= self._common.final


def _decoded(reply: Reply) -> Any:
    """Return a result; None for what is none, and for text that cannot be read, of which the verdict speaks."""
    try:
        return msgspec.json.decode(reply.fragment) if reply.kind == "result" else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _answer(reply: Reply) -> Answer:
    return Answer(kind=reply.kind, fragment=reply.fragment if reply.kind != "none" else b"")


def _is_unserved(reply: Reply) -> bool:
    return reply.error_class == "method_not_found"


async def compare(
    primary_url: str,
    shadow_url: str,
    options: Options,
    *,
    say: Callable[[str], None],
    show: Callable[[Report], None],
    stop: asyncio.Event,
) -> Report:
    """
    Run one comparison; see `Comparison`.

    An endpoint that stops answering on the way ends it; what was found until then is in the report, which says so.
    """
    connector = aiohttp.TCPConnector(limit_per_host=max(1, options.pace.concurrency) * 2)
    async with aiohttp.ClientSession(connector=connector) as session:
        comparison = Comparison(session, primary_url, shadow_url, options, say=say, show=show, stop=stop)
        try:
            return await comparison.run()
        except EndpointFailed as failed:
            return _ended(comparison.report, failed)
        except BaseExceptionGroup as group:
            failed_ones = group.subgroup(EndpointFailed)
            if failed_ones is None:
                raise
            return _ended(comparison.report, _first(failed_ones))


def _ended(report: Report, failed: EndpointFailed) -> Report:
    if not report.requests:
        raise failed
    report.ended_by = str(failed)
    return report


def _first(group: BaseExceptionGroup[EndpointFailed]) -> EndpointFailed:
    """Return the first exception of a group, however deep."""
    inner = group.exceptions[0]
    return inner if isinstance(inner, EndpointFailed) else _first(inner)
