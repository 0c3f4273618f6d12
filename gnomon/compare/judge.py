"""
The verdict on one pair of answers. The rules are those of the specification (docs/comparison.md), in this order:

    1. The same bytes, or the same value: `identical`, whatever the question. Two equal refusals: `incomparable`.
    2. No JSON-RPC answer from the shadow: `missing`.
    3. Both results empty (null, "", "0x", [], {}): `identical`.
    4. Equal once masks are applied: `identical_masked`.
    5. One side gave no answer (a refusal): `error`; both: `incomparable`.
    6. The question has no single right answer: `incomparable`.
    7. Every difference is a tolerated one: `tolerated`. Else `mismatch`.
    8. A limit was reached before that was known, or a text cannot be read: `undecided`.
"""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Raw, Struct

from gnomon.compare import classes, exact
from gnomon.compare.exact import NotJson, TooDeep, Value
from gnomon.compare.findings import Finding, group
from gnomon.compare.masks import NO_MASKS, MaskSet
from gnomon.compare.paths import keys_of
from gnomon.compare.tolerances import NO_TOLERANCES, Tolerances
from gnomon.compare.walk import Difference, TooMany, Walk
from gnomon.rpc import errors as rpc_errors
from gnomon.rpc.blocks import BlockRef, request_block, response_block
from gnomon.rpc.emptiness import is_emptyish
from gnomon.rpc.finality import Finality, finality
from gnomon.rpc.methods import Method, lookup

Outcome = Literal[
    "identical", "identical_masked", "tolerated", "mismatch", "error", "incomparable", "missing", "undecided"
]
Kind = Literal["result", "error", "none"]
Reason = Literal["", "too_large", "too_deep", "too_many", "no_body", "parse"]

MAX_FRAGMENT_BYTES: Final = 64 << 20
"""A longer answer is not read: equal by its bytes, else undecided."""
MAX_DIFFERENCES: Final = 10_000
"""Past so many the walk stops; it is a mismatch unless all that was seen is tolerated."""


class Question(Struct, frozen=True, kw_only=True):
    """What was asked, and what was known of the chain then. Unknown heads are None, never 0."""

    network: str = ""
    method: str = ""
    params: object = None
    """Raw JSON text, or decoded."""
    ref: BlockRef | None = None
    """The block that the parameters name, where known already."""
    latest: int | None = None
    """The network's heads."""
    finalized: int | None = None
    primary_head: int | None = None
    """The newest block of the upstream that answered, when it answered."""
    shadow_head: int | None = None


class Answer(Struct, frozen=True, kw_only=True):
    """One answer."""

    kind: Kind = "none"
    """`none`: there is no JSON-RPC answer."""
    fragment: bytes | bytearray | memoryview | Raw = b""
    """The raw text of its `result` or `error` member."""
    is_equal: bool = False
    """A digest says that the other side's bytes are the same; the fragment may be left out then."""
    response_block: int | None = None
    """The block that the answer names, where known already."""
    error_class: str = ""
    """Its class, where known already and the fragment is left out."""


class Policy(Struct, frozen=True, kw_only=True):
    """What does not count."""

    masks: MaskSet = NO_MASKS
    tolerate: Tolerances = NO_TOLERANCES
    """Differences that are forgiven, and named."""


class Verdict(Struct, frozen=True, kw_only=True):
    """What is to be said of one pair."""

    outcome: Outcome
    class_: str = "none"
    """The most telling class of the differences; `none` where none was found or looked for."""
    classes: tuple[str, ...] = ()
    """All of them, the most telling first."""
    finality: Finality = "unknown"
    findings: tuple[Finding, ...] = ()
    paths: tuple[str, ...] = ()
    """Of all differences, each once, in order of appearance."""
    is_emptyish: bool = False
    """The shadow's result is empty."""
    is_larger: bool = False
    """The shadow's fragment is longer than the primary's."""
    n_masked: int = 0
    """Members that masks removed, on both sides together."""
    reason: Reason = ""
    """Why it is undecided."""


NO_POLICY: Final = Policy()


def judge(question: Question, primary: Answer, shadow: Answer, policy: Policy = NO_POLICY) -> Verdict:
    """
    Return the verdict on two answers to one question.

    Never raises on what the answers hold: unreadable text and reached limits are `undecided`.
    """
    return _Judgement(question, primary, shadow, policy).verdict()


def examine(
    question: Question, primary: Answer, shadow: Answer, policy: Policy = NO_POLICY
) -> tuple[Verdict, list[tuple[str, Difference]]]:
    """Return the verdict, and each difference that it counts with the root of its path."""
    judgement = _Judgement(question, primary, shadow, policy)
    verdict = judgement.verdict()
    return verdict, judgement.counted


def is_forgiven(tolerate: Tolerances, root: str, difference: Difference) -> bool:
    """Say whether tolerances forgive one difference; those with a path do so in results only."""
    keys = keys_of(difference.place) if root == "$.result" and difference.class_ != "error_vs_result" else None
    return tolerate.forgives(difference.class_, keys)


class Differences(Struct):
    """What a comparison of two answers found."""

    found: list[tuple[str, Difference]]
    """With the root of each path."""
    is_whole: bool = True
    """False: the limit was reached."""


class _Judgement:
    """One pair being judged: what several rules need, found out once."""

    def __init__(self, question: Question, primary: Answer, shadow: Answer, policy: Policy) -> None:
        self._question = question
        self._primary = primary
        self._shadow = shadow
        self._policy = policy
        self._method: Method = lookup(question.method)
        self._ref = question.ref or request_block(self._method, question.params)
        self._bytes_primary = bytes(primary.fragment)
        self._bytes_shadow = bytes(shadow.fragment)
        self._n_masked = 0
        self.counted: list[tuple[str, Difference]] = []

    # --- outcomes ------------------------------------------------------------------------------------------------

    def verdict(self) -> Verdict:
        primary, shadow = self._primary, self._shadow
        if shadow.kind == "none":
            return self._plain("missing")
        if primary.kind == shadow.kind and self._has_equal_bytes():
            return self._equal(None)
        if not self._bytes_shadow or (primary.kind != "none" and not self._bytes_primary):
            return self._plain("undecided", reason="no_body")
        if max(len(self._bytes_primary), len(self._bytes_shadow)) > MAX_FRAGMENT_BYTES:
            return self._plain("undecided", reason="too_large")
        try:
            return self._read()
        except (TooDeep, RecursionError):
            return self._plain("undecided", reason="too_deep")
        except NotJson:
            return self._plain("undecided", reason="parse")

    def _read(self) -> Verdict:
        """Judge answers whose bytes differ."""
        if self._primary.kind == "result" and self._shadow.kind == "result":
            return self._results()
        primary = exact.decode(self._bytes_primary) if self._primary.kind == "error" else None
        shadow = exact.decode(self._bytes_shadow) if self._shadow.kind == "error" else None
        if self._primary.kind == "error" and self._shadow.kind == "error":
            differences = self._walk(primary, shadow, "$.error")
            if not differences.found:
                return self._equal(primary)
            return self._refused_or_differs(primary, shadow, differences)
        # An error against a result, or the primary gave nothing and the shadow something.
        sides = (
            exact.decode(self._bytes_primary) if self._primary.kind == "result" else primary,
            exact.decode(self._bytes_shadow) if self._shadow.kind == "result" else shadow,
        )
        whole = Difference(None, "error_vs_result", *sides)
        return self._refused_or_differs(primary, shadow, Differences([("$.error", whole), ("$.result", whole)]))

    def _results(self) -> Verdict:
        a, b = self._bytes_primary, self._bytes_shadow
        is_empty_a, is_empty_b = is_emptyish(a), is_emptyish(b)
        primary, shadow = exact.decode(a), exact.decode(b)
        if is_empty_a and is_empty_b:
            return self._plain("identical")
        original_indexes: dict[int, list[int]] = {}
        if self._policy.masks:
            if exact.same(primary, shadow):
                return self._plain("identical")
            self._n_masked = self._policy.masks.remove(primary, original_indexes)
            self._n_masked += self._policy.masks.remove(shadow, original_indexes)
        differences = self._walk(primary, shadow, "$.result", original_indexes)
        if not differences.found:
            return self._plain("identical_masked" if self._policy.masks else "identical")
        if is_empty_a != is_empty_b:
            empty = a if is_empty_a else b
            if self._method.response_block_path and type(primary) is type(shadow) is dict:
                # A look-up that gives {} for what it has not, as 151 of the specification: not found against found.
                differences = Differences([("$.result", Difference(None, "empty_vs_data", primary, shadow))])
            if empty.strip()[:1] not in b'"' and self._finality() == "unfinalized":
                differences.found = [(root, _as_stale(difference)) for root, difference in differences.found]
        return self._differs(differences)

    def _refused_or_differs(self, primary: Value, shadow: Value, differences: Differences) -> Verdict:
        """Judge a pair of which at least one side is an error, or nothing."""
        refusals = [
            self._primary.kind == "none" or (self._primary.kind == "error" and self._is_refusal(primary)),
            self._shadow.kind == "error" and self._is_refusal(shadow),
        ]
        if all(refusals):
            return self._found("incomparable", differences)
        if any(refusals):
            return self._found("error", differences)
        return self._differs(differences)

    def _differs(self, differences: Differences) -> Verdict:
        """Judge two answers that differ: is there a right one, and is the difference forgiven?"""
        if self._has_no_right_answer():
            is_head = self._method.response_block_path == () and self._primary.kind == self._shadow.kind == "result"
            is_stale = is_head and (self._block_of(self._primary) != self._block_of(self._shadow))
            return self._found("incomparable", differences, class_="stale_head" if is_stale else "")
        if self._has_moved():
            return self._found("incomparable", differences, class_="stale_head")
        tolerate = self._policy.tolerate
        if tolerate and all(is_forgiven(tolerate, root, found) for root, found in differences.found):
            if not differences.is_whole:
                return self._plain("undecided", reason="too_many")
            return self._found("tolerated", differences)
        return self._found("mismatch", differences)

    def _equal(self, error: Value) -> Verdict:
        """Judge two equal answers: the error decoded where it is one and was read, else None."""
        if self._primary.kind != "error":
            return self._plain("identical")
        if error is None and self._bytes_primary:
            try:
                error = exact.decode(self._bytes_primary)
            except (NotJson, TooDeep):
                return self._plain("identical")
        if error is None:
            error_class = self._primary.error_class or self._shadow.error_class
            return self._plain(
                "incomparable" if error_class and error_class not in rpc_errors.VERDICTS else "identical"
            )
        return self._plain("incomparable" if self._is_refusal(error) else "identical")

    # --- facts ---------------------------------------------------------------------------------------------------

    def _has_equal_bytes(self) -> bool:
        if self._primary.is_equal and self._shadow.is_equal:
            return True
        return self._bytes_primary == self._bytes_shadow and len(self._bytes_primary) > 0

    def _walk(
        self, primary: Value, shadow: Value, root: str, original_indexes: dict[int, list[int]] | None = None
    ) -> Differences:
        walk = Walk(exact.same, MAX_DIFFERENCES, original_indexes)
        is_whole = True
        try:
            walk.run(primary, shadow)
        except TooMany:
            is_whole = False
        found = walk.differences
        if root == "$.error":
            found = [_as_error(difference) for difference in found]
        return Differences([(root, difference) for difference in found], is_whole)

    def _is_refusal(self, error: Value) -> bool:
        """Return whether an error says that the node gave no answer."""
        code: object = None
        message: object = ""
        data: object = None
        if isinstance(error, Mapping):
            code = error.get("code")
            message = error.get("message")
            data = error.get("data")
        elif isinstance(error, str):
            message = error
        return rpc_errors.classify(
            code if isinstance(code, int) and not isinstance(code, bool) else None,
            message if isinstance(message, str) else "",
            data,
            method=self._question.method,
        ).is_no_answer

    def _has_no_right_answer(self) -> bool:
        return self._method.is_node_local or (
            self._ref.tag == "pending" and self._question.method == "eth_getTransactionCount"
        )

    def _has_moved(self) -> bool:
        """Return whether the two were asked about different newest blocks."""
        if not (self._ref.is_moving or self._method.finality == "realtime"):
            return False
        question = self._question
        heads = (question.primary_head, question.shadow_head)
        if None not in heads and heads[0] != heads[1]:
            return True
        if self._primary.kind == self._shadow.kind == "result":
            numbers = (self._block_of(self._primary), self._block_of(self._shadow))
            return None not in numbers and numbers[0] != numbers[1]
        return False

    def _block_of(self, answer: Answer) -> int | None:
        if answer.kind != "result":
            return None
        if answer.response_block is not None:
            return answer.response_block
        return response_block(self._method, answer.fragment) if bytes(answer.fragment) else None

    def _finality(self) -> Finality:
        answer_block = None
        if self._ref.number is None and not self._ref.tag and self._method.response_block_path is not None:
            answer_block = self._block_of(self._primary)
            if answer_block is None:
                answer_block = self._block_of(self._shadow)
        return finality(self._method, self._ref, answer_block, self._question.latest, self._question.finalized)

    # --- verdicts ------------------------------------------------------------------------------------------------

    def _plain(self, outcome: Outcome, reason: Reason = "") -> Verdict:
        return Verdict(
            outcome=outcome,
            finality=self._finality(),
            is_emptyish=self._shadow.kind == "result" and bool(self._bytes_shadow) and is_emptyish(self._bytes_shadow),
            is_larger=len(self._bytes_shadow) > len(self._bytes_primary),
            n_masked=self._n_masked,
            reason=reason,
        )

    def _found(self, outcome: Outcome, differences: Differences, class_: str = "") -> Verdict:
        named = {difference.class_ for _, difference in differences.found}
        if class_:
            named.add(class_)
        all_classes = classes.most_telling(named)
        self.counted = differences.found
        all_paths, findings = group(differences.found)
        return Verdict(
            outcome=outcome,
            class_=all_classes[0],
            classes=all_classes,
            finality=self._finality(),
            findings=findings,
            paths=all_paths,
            is_emptyish=self._shadow.kind == "result" and is_emptyish(self._bytes_shadow),
            is_larger=len(self._bytes_shadow) > len(self._bytes_primary),
            n_masked=self._n_masked,
        )


def _as_stale(difference: Difference) -> Difference:
    """Read null or no elements against something, above finality, as a node that is behind; 0x is a value there."""
    return difference._replace(class_="stale_head") if difference.place is None else difference


_ERROR_MEMBERS: Final = {"code": "error_code", "message": "error_message"}


def _as_error(difference: Difference) -> Difference:
    """Name what differs in an error by its member; an error that is no object is all message."""
    place = difference.place
    if place is None:
        return difference._replace(class_="error_message")
    class_ = _ERROR_MEMBERS.get(place[1]) if place[0] is None else None
    return difference if class_ is None else difference._replace(class_=class_)
