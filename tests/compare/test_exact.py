import json

import pytest
from hypothesis import given

from gnomon.compare.exact import NotJson, Number, TooDeep, canonical, decode, same, text_of
from tests.compare.values import values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"9007199254740993", 9007199254740993),
        (b"115792089237316195423570985008687907853269984665640564039457584007913129639936", 2**256),
        (b"-18446744073709551617", -(2**64) - 1),
        (b"1.0", Number("1.0")),
        (b"1e400", Number("1e400")),
        (b"0.1000000000000000055511151231257827", Number("0.1000000000000000055511151231257827")),
        (b'{"a":1,"a":2}', {"a": 2}),
        (rb'"\u003e\u0026\u00e9"', ">&é"),
        (rb'"\ud83d\ude00"', "😀"),
        (rb'"\ud800"', "\ud800"),
        (b'"\xff"', "\udcff"),
        (b'"a\x01b"', "a\x01b"),
        (b" [ ] ", []),
    ],
)
def test_text_is_decoded_without_loss(text: bytes, expected: object) -> None:
    """Big integers, number spellings, duplicate members, escapes, lone surrogates, broken UTF-8, control characters."""

    assert expected == decode(text)


def test_an_integer_of_ten_thousand_digits_keeps_its_spelling() -> None:
    """It is past what Python converts, and still tells apart by its last digit."""

    assert decode(b"1" * 10_000) == Number("1" * 10_000) != decode(b"1" * 9_999 + b"2")


@pytest.mark.parametrize(
    "text", [b"", b"{", b"nul", b"[1,]", b"{'a':1}", b"1 2", b"<html>", b"\xef\xbb\xbf1", b'{"a"}']
)
def test_what_is_no_json_is_one_named_error(text: bytes) -> None:
    """Cut, wrong or trailing text raises NotJson."""
    with pytest.raises(NotJson):
        decode(text)


@pytest.mark.parametrize("text", [b"[" * 100_000, b"[" * 5_000 + b"]" * 5_000, b'{"a":' * 5_000 + b"1" + b"}" * 5_000])
def test_nesting_past_the_limit_is_one_named_error(text: bytes) -> None:
    """It never overflows the stack."""
    with pytest.raises((TooDeep, NotJson)):
        decode(text)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (b"true", b"1"),
        (b"false", b"0"),
        (b"1", b"1.0"),
        (b'"1"', b"1"),
        (b"[true,1]", b"[1,true]"),
        (b'{"a":{"b":[false]}}', b'{"a":{"b":[0]}}'),
        (b"null", b"false"),
        (b"[]", b"{}"),
        (b'[["a"],"b"]', b'[["a","b"]]'),
        (b"9007199254740993", b"9007199254740992"),
        (b"1.0", b"1.00"),
    ],
)
def test_two_values_are_never_taken_for_one(a: bytes, b: bytes) -> None:
    """Booleans are no numbers, notations are apart, and neighbours past 2^53 differ."""

    assert not same(decode(a), decode(b))
    assert canonical(decode(a)) != canonical(decode(b))


@given(values)
def test_member_order_and_white_space_do_not_matter(value: object) -> None:
    """The same value written in another way is equal, and has the same canonical key."""
    plain = decode(json.dumps(value).encode())
    other = decode(json.dumps(value, sort_keys=True, indent=2).encode())

    assert same(plain, other)
    assert canonical(plain) == canonical(other)


@given(values, values)
def test_canonical_keys_are_equal_exactly_when_values_are(a: object, b: object) -> None:
    """The key is injective, whatever the strings hold."""
    texts = [json.dumps(value, sort_keys=True) for value in (a, b)]

    assert (canonical(a) == canonical(b)) == (texts[0] == texts[1])


def test_canonical_keys_hold_for_texts_that_are_no_utf8() -> None:
    """Half surrogate pairs and broken bytes keep their differences, in lists, objects and types."""
    texts = [
        rb'["\ud800",1]',
        rb'["\ud801",1]',
        rb'["\ud800",true]',
        rb'{"\ud800":1}',
        rb'{"\ud800":1.0}',
        rb'["\ud800"]',
    ]
    keys = [canonical(decode(text)) for text in texts]

    assert len(set(keys)) == len(keys)
    assert canonical(decode(rb'{"a":"\ud800","b":1}')) == canonical(decode(rb'{"b":1,"a":"\ud800"}'))


def test_a_value_shown_is_json_with_its_own_spelling() -> None:
    """Numbers keep their digits; what cannot be written as UTF-8 is escaped."""

    assert text_of(decode(b'{"b":1.50,"a":[1e2]}')) == '{"b":1.50,"a":[1e2]}'
    assert text_of(decode(rb'"\ud800"')) == r'"\ud800"'


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ('{"a":1,"b":true}', '{"b":true,"a":1}', True),
        ('{"a":1,"b":true}', '{"b":1,"a":true}', False),
        ('{"a":{"x":0},"b":[false]}', '{"b":[false],"a":{"x":0}}', True),
        ('{"a":{"x":0},"b":[false]}', '{"b":[0],"a":{"x":false}}', False),
        ('[[true],{"a":[1]}]', '[[true],{"a":[true]}]', False),
        ("[true,1]", "[1,true]", False),
    ],
)
def test_booleans_are_no_numbers_in_any_order_of_members(a: str, b: str, expected: bool) -> None:
    """Though Python takes them for equal."""
    assert same(decode(a.encode()), decode(b.encode())) is expected
