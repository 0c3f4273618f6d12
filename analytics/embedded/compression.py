"""
Bodies in and out: gzip, deflate, zstd, lz4 frames, brotli where its package is there.

Clients write one frame per block, so a body may be many frames; a decoder goes on with the next one. Expansion is
bounded by the caller, piece by piece: a decoder never returns more than 32 MiB at once.
"""

import importlib
import zlib
from collections.abc import Iterator
from typing import Any, Protocol

import lz4.frame
import zstandard

from analytics.embedded.errors import Code, Refusal

MAX_CHUNK_BYTES = 4 << 20


class Decoder(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what `data` decodes to, in bounded pieces."""
        ...

    def finish(self) -> None:
        """
        Say that the body is over.

        Raises:
            Refusal: it ends in mid-frame.
        """
        ...


class Encoder(Protocol):
    def feed(self, data: bytes) -> bytes: ...

    def finish(self) -> bytes: ...


def _broken(name: str, reason: object) -> Refusal:
    return Refusal.of(Code.CANNOT_DECOMPRESS, f"Cannot decompress the request's body ({name}): {reason}")


class _Plain:
    def feed(self, data: bytes) -> Iterator[bytes]:
        if data:
            yield data

    def finish(self) -> None:
        return None


class _Zlib:
    def __init__(self, name: str, window_bits: int) -> None:
        self._name = name
        self._window_bits = window_bits
        self._decoder = zlib.decompressobj(window_bits)
        self._has_begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            while data:
                self._has_begun = True
                piece = self._decoder.decompress(data, MAX_CHUNK_BYTES)
                if piece:
                    yield piece
                if self._decoder.eof:
                    data = self._decoder.unused_data
                    self._decoder = zlib.decompressobj(self._window_bits)
                    self._has_begun = False
                else:
                    data = self._decoder.unconsumed_tail
        except zlib.error as error:
            raise _broken(self._name, error) from error

    def finish(self) -> None:
        if self._has_begun:
            raise _broken(self._name, "the body ends early")


class _Lz4:
    def __init__(self) -> None:
        self._decoder = lz4.frame.LZ4FrameDecompressor()
        self._has_begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            while data or not self._decoder.needs_input:
                self._has_begun = True
                piece = self._decoder.decompress(data, MAX_CHUNK_BYTES)
                data = b""
                if piece:
                    yield piece
                if self._decoder.eof:
                    data = self._decoder.unused_data or b""
                    self._decoder = lz4.frame.LZ4FrameDecompressor()
                    self._has_begun = False
        except RuntimeError as error:
            raise _broken("lz4", error) from error

    def finish(self) -> None:
        if self._has_begun:
            raise _broken("lz4", "the body ends early")


class _Zstd:
    _FEED_BYTES = 1 << 10
    """The decoder cannot bound its output; 1 KiB in is at most 256 blocks of 128 KiB, 32 MiB out."""

    def __init__(self) -> None:
        self._context = zstandard.ZstdDecompressor(max_window_size=128 << 20)
        self._decoder: Any = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            while data:
                if self._decoder is None:
                    self._decoder = self._context.decompressobj(write_size=1 << 20)
                piece = self._decoder.decompress(data[: self._FEED_BYTES])
                if piece:
                    yield piece
                rest = data[self._FEED_BYTES :]
                if self._decoder.eof:
                    rest = self._decoder.unused_data + rest
                    self._decoder = None
                data = rest
        except zstandard.ZstdError as error:
            raise _broken("zstd", error) from error

    def finish(self) -> None:
        if self._decoder is not None:
            raise _broken("zstd", "the body ends early")


class _Brotli:
    def __init__(self, module: Any) -> None:
        self._module = module
        self._decoder = module.Decompressor()
        self._has_begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            for start in range(0, len(data), 16 << 10):
                self._has_begun = True
                piece = bytes(self._decoder.process(data[start : start + (16 << 10)]))
                if piece:
                    yield piece
        except self._module.error as error:
            raise _broken("br", error) from error

    def finish(self) -> None:
        if self._has_begun and not self._decoder.is_finished():
            raise _broken("br", "the body ends early")


def decoder(content_encoding: str) -> Decoder:
    """
    Return a decoder for a request's Content-Encoding.

    Raises:
        Refusal: an encoding that is not known, or whose package is not installed.
    """
    name = content_encoding.strip().lower()
    if name in ("", "identity"):
        return _Plain()
    if name in ("gzip", "x-gzip"):
        return _Zlib("gzip", 31)
    if name == "deflate":
        return _Zlib("deflate", 15)
    if name == "lz4":
        return _Lz4()
    if name == "zstd":
        return _Zstd()
    if name == "br" and (module := _brotli()) is not None:
        return _Brotli(module)
    raise Refusal.of(
        Code.UNKNOWN_COMPRESSION_METHOD,
        f"Content-Encoding {name!r} is not supported here; send one of {', '.join(supported())}",
    )


class _ZlibEncoder:
    def __init__(self, window_bits: int) -> None:
        self._encoder = zlib.compressobj(3, zlib.DEFLATED, window_bits)

    def feed(self, data: bytes) -> bytes:
        return self._encoder.compress(data)

    def finish(self) -> bytes:
        return self._encoder.flush()


class _Lz4Encoder:
    def __init__(self) -> None:
        self._encoder = lz4.frame.LZ4FrameCompressor(auto_flush=True)
        self._has_begun = False

    def feed(self, data: bytes) -> bytes:
        begun = b"" if self._has_begun else self._encoder.begin()
        self._has_begun = True
        return bytes(begun + self._encoder.compress(data))

    def finish(self) -> bytes:
        begun = b"" if self._has_begun else self._encoder.begin()
        return bytes(begun + self._encoder.flush())


class _ZstdEncoder:
    def __init__(self) -> None:
        self._encoder = zstandard.ZstdCompressor(level=1).compressobj()

    def feed(self, data: bytes) -> bytes:
        return self._encoder.compress(data)

    def finish(self) -> bytes:
        return self._encoder.flush()


class _BrotliEncoder:
    def __init__(self, module: Any) -> None:
        self._encoder = module.Compressor(quality=2)

    def feed(self, data: bytes) -> bytes:
        return bytes(self._encoder.process(data))

    def finish(self) -> bytes:
        return bytes(self._encoder.finish())


def encoder(accept_encoding: str) -> tuple[str, Encoder] | None:
    """
    Return name and encoder of the first encoding that the client accepts and we have, or None for plain bytes.

    >>> encoder("identity")
    >>> encoder("snappy, lz4;q=0.5, gzip")[0]
    'lz4'
    """
    for part in accept_encoding.split(","):
        name, _, quality = part.strip().lower().partition(";")
        if quality.replace(" ", "") in ("q=0", "q=0.0"):
            continue
        match name.strip():
            case "lz4":
                return "lz4", _Lz4Encoder()
            case "zstd":
                return "zstd", _ZstdEncoder()
            case "gzip":
                return "gzip", _ZlibEncoder(31)
            case "deflate":
                return "deflate", _ZlibEncoder(15)
            case "br" if (module := _brotli()) is not None:
                return "br", _BrotliEncoder(module)
            case _:
                continue
    return None


def supported() -> tuple[str, ...]:
    """Return the names of the encodings that this process can read."""
    names = ("gzip", "deflate", "zstd", "lz4")
    return (*names, "br") if _brotli() is not None else names


def _brotli() -> Any:
    try:
        return importlib.import_module("brotli")
    except ImportError:
        return None
