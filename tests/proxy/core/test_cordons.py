"""Cordons by hand: kept exactly, ended in time, and refused where nobody would be left."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core import cordons
from proxy.core.cordons import Candidate, Cordon, Cordons, remaining


def candidate(name: str, *, is_fallback: bool = False, can_serve: bool = True) -> Candidate:
    return Candidate(name, is_fallback, can_serve)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([], (0, 0)),
        ([candidate("p2")], (1, 0)),
        ([candidate("p2", can_serve=False)], (0, 0)),
        ([candidate("f1", is_fallback=True)], (0, 1)),
        ([candidate("f1", is_fallback=True, can_serve=False), candidate("p2"), candidate("p3")], (2, 0)),
    ],
)
def test_who_is_left_is_counted(others: list[Candidate], expected: tuple[int, int]) -> None:
    """Those that could serve now; the one that is to go does not count, however well it is."""
    found = remaining("p1", [candidate("p1"), *others])

    assert (found.n_primaries, found.n_fallbacks) == expected
    assert bool(found.objection) is (expected == (0, 0))


TEXT = st.text(max_size=10)
CORDONS = st.lists(
    st.builds(Cordon, project=TEXT, upstream=TEXT, at=st.floats(0, 1e10), until=st.none() | st.floats(0, 1e10),
              comment=TEXT, author=TEXT),
    max_size=5,
)  # fmt: skip


@given(CORDONS)
def test_what_is_kept_is_what_was_in_force(found: list[Cordon]) -> None:
    """Every member, whatever it holds; one for each upstream."""
    kept = cordons.decode(cordons.encode(Cordons(found)))

    assert kept.all == Cordons(found).all
    assert len(kept) == len({cordon.key for cordon in found})


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"{}", b'{"v": 2, "cordons": []}', b'{"v": 1, "cordons": [{}]}'])
def test_a_text_that_is_none_is_refused(text: bytes) -> None:
    """With one error."""
    with pytest.raises(ValueError, match=r"."):
        cordons.decode(text)


@pytest.mark.parametrize(("until", "is_due"), [(None, False), (99.9, True), (100.0, True), (100.1, False)])
def test_a_cordon_ends_in_time(until: float | None, is_due: bool) -> None:
    """At its end, which is not included; without one, never by itself."""
    cordon = Cordon(project="main", upstream="p1", at=1.0, until=until)

    assert Cordons([cordon]).due(100.0) == ([cordon] if is_due else [])


def test_a_cordon_is_replaced_and_taken_back() -> None:
    """The last word holds; what is not there cannot be taken."""
    book = Cordons()
    book.put(Cordon(project="main", upstream="p1", at=1.0, comment="old"))
    book.put(Cordon(project="main", upstream="p1", at=2.0, comment="new"))
    book.put(Cordon(project="other", upstream="p1", at=3.0))
    found = book.find("main", "p1")

    assert (found and found.comment, len(book)) == ("new", 2)
    assert book.take(("main", "p1")) == found
    assert book.take(("main", "p1")) is None
    assert [cordon.project for cordon in book.all] == ["other"]
