"""Bodies are decoded whole, in any pieces, and never beyond the bound at once."""

import gzip
import zlib

import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from analytics.embedded.compression import MAX_CHUNK_BYTES, decoder, encoder, supported
from analytics.embedded.errors import Refusal

NAMES = [name for name in supported() if name != "br"]


def compress(name: str, data: bytes) -> bytes:
    match name:
        case "gzip":
            return gzip.compress(data)
        case "deflate":
            return zlib.compress(data)
        case "lz4":
            return bytes(lz4.frame.compress(data))
        case "zstd":
            return zstandard.ZstdCompressor().compress(data)
        case _:
            return data


def decode(name: str, pieces: list[bytes]) -> bytes:
    one = decoder(name)
    found = b"".join(out for piece in pieces for out in one.feed(piece))
    one.finish()
    return found


@pytest.mark.parametrize("name", [*NAMES, "", "identity"])
@given(frames=st.lists(st.binary(max_size=3000), min_size=1, max_size=3), step=st.integers(1, 500))
def test_frames_one_behind_the_other_are_one_body(name: str, frames: list[bytes], step: int) -> None:
    """Clients write a frame per block; the pieces of the network are cut anywhere."""
    body = b"".join(compress(name, frame) for frame in frames)
    pieces = [body[start : start + step] for start in range(0, len(body), step)]

    assert b"".join(frames) == decode(name, pieces)


@pytest.mark.parametrize("name", NAMES)
def test_a_bomb_comes_in_bounded_pieces(name: str) -> None:
    """200 MB of zeros in a small body: the reader may stop after any piece."""
    bomb = compress(name, bytes(200_000_000))
    total = 0
    for piece in decoder(name).feed(bomb):
        assert len(piece) <= 8 * MAX_CHUNK_BYTES
        total += len(piece)

    assert total == 200_000_000


@pytest.mark.parametrize("name", NAMES)
def test_a_body_that_ends_early_is_refused(name: str) -> None:
    """Half of the rows must not pass for all of them."""
    whole = compress(name, bytes(range(256)) * 100)

    with pytest.raises(Refusal, match="decompress"):
        decode(name, [whole[:-5]])


@pytest.mark.parametrize("name", NAMES)
def test_garbage_is_refused(name: str) -> None:
    """It is not data of that encoding."""
    with pytest.raises(Refusal, match="decompress"):
        decode(name, [b"this is no compressed data at all, is it?"])


@pytest.mark.parametrize("name", ["snappy", "xz", "gzip, br", "x"])
def test_an_unknown_encoding_is_refused_by_name(name: str) -> None:
    """The message says what there is."""
    with pytest.raises(Refusal, match="gzip"):
        decoder(name)


@pytest.mark.parametrize("name", NAMES)
def test_an_encoder_is_undone_by_its_decoder(name: str) -> None:
    """In several pieces, and with none at all."""
    for pieces in ([], [b""], [b"a" * 5000, b"", bytes(range(256)) * 50]):
        chosen = encoder(name)
        assert chosen is not None
        body = b"".join([*(chosen[1].feed(piece) for piece in pieces), chosen[1].finish()])

        assert (name, b"".join(pieces)) == (chosen[0], decode(name, [body]))


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        ("", None),
        ("identity", None),
        ("*", None),
        ("gzip;q=0", None),
        ("snappy", None),
        ("gzip", "gzip"),
        ("zstd, gzip", "zstd"),
        ("LZ4 ; q=0.5,gzip", "lz4"),
        ("gzip;q=0, deflate", "deflate"),
    ],
)
def test_the_first_known_encoding_is_chosen(accepted: str, expected: str | None) -> None:
    """In the client's order; a weight of nought means no."""
    chosen = encoder(accepted)

    assert expected == (chosen[0] if chosen else None)
