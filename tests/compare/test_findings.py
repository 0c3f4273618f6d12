from gnomon.compare.findings import VALUE_CHARACTERS, Finding, example, group
from gnomon.compare.walk import ABSENT, Difference


def test_the_same_difference_in_many_elements_is_one_finding() -> None:
    """One missing member in 226 receipts: one finding with its count, the first as its example, every path."""
    differences = [("$.result", Difference(((None, n), "status"), "missing_field", "0x0", ABSENT)) for n in range(226)]
    paths, findings = group(differences)

    assert findings == (Finding("$.result[0].status", "$.result[*].status", 226, "missing_field", '"0x0"', ""),)
    assert len(paths) == 226


def test_another_class_at_the_same_place_is_another_finding() -> None:
    """Kinds are never mixed under one count."""
    differences = [
        ("$.result", Difference((None, 0), "value", 1, 2)),
        ("$.result", Difference((None, 1), "type", 1, "1")),
    ]

    assert [(f.generic_path, f.class_) for f in group(differences)[1]] == [
        ("$.result[*]", "value"),
        ("$.result[*]", "type"),
    ]


def test_a_long_example_is_cut_around_the_difference() -> None:
    """Both sides fit the limit, differ, and show where they were cut."""
    a = "0x" + "00" * 5000 + "aa" + "00" * 5000
    b = "0x" + "00" * 5000 + "bb" + "00" * 5000
    shown_a, shown_b = example(a, b)

    assert len(shown_a) <= VALUE_CHARACTERS >= len(shown_b)
    assert "aa" in shown_a
    assert "bb" in shown_b
    assert shown_a[0] == shown_a[-1] == "…"


def test_a_long_example_beside_a_short_one_keeps_both() -> None:
    """The short side is whole where the cut begins at its start; nothing beside something shows its head."""

    assert example(["x" * 1000], None)[1] == "null"
    assert example("x" * 1000, ABSENT) == ('"' + "x" * (VALUE_CHARACTERS - 2) + "…", "")


def test_short_examples_stay_whole() -> None:
    """At the limit nothing is cut."""
    text = "x" * (VALUE_CHARACTERS - 2)

    assert example(text, 1) == (f'"{text}"', "1")
