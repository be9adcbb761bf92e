"""Damage to files: to their bytes, to what is compressed in them, to the parts of archives."""

import bz2
import gzip
import io
import lzma
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
from numpy.random import Generator

from fuzzing.tables import chance, choose
from fuzzing.text_writers import pack

INTEGERS = (0, -1, -8, -16, 2**31 - 1, 1, 2**15, -(2**31))
TEXTS = (
    *(b'"', b'""', b'"open', b"\0", b",", b";", b"\t", b"\r", b"\n", b"\r\n", b"\n\n", b" "),
    *(b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"nan", b"inf", b"-", b"1e999", b"1_0", b"0x10"),
    *(b":", b"#", b"%", b"true", b"99999999999999999999", b"-1", b"sep=;\n", b"# ", b"1,5"),
)
PACKED = (".gz", ".bz2", ".xz")
HDF5 = b"\x89HDF\r\n\x1a\n"


def mutated(rng: Generator, sound: Path, others: Sequence[Path]) -> bytes:
    """A file as it would be after some damage, inside what is compressed or outside."""
    data = sound.read_bytes()
    if chance(rng, 0.5):
        inside = _inside(rng, sound, data, others)
        if inside is not None:
            return inside
    return damage(rng, data, others)


def damage(rng: Generator, data: bytes, others: Sequence[Path]) -> bytes:
    """Some bytes, changed in one to three of many ways."""
    for _ in range(choose(rng, 1, 1, 1, 2, 3)):
        if data:
            is_text = b"\0" not in data and chance(rng, 0.7)
            data = _damage_text(rng, data) if is_text else _damage_once(rng, data, others)
    return data


def _damage_text(rng: Generator, data: bytes) -> bytes:
    """Text that is still text: cells, lines and marks lost, doubled, swapped or put in."""
    lines = data.splitlines(keepends=True) or [data]
    row, other = (int(rng.integers(len(lines))) for _ in range(2))
    line = lines[row]
    at = int(rng.integers(len(line) + 1))
    kind = int(rng.integers(7))
    if kind == 0:
        lines[row] = b""
    elif kind == 1:
        lines[row] = line + lines[other]
    elif kind == 2:
        lines[row], lines[other] = lines[other], line
    elif kind == 3:
        lines[row] = line[:at] + line[at + 1 :]
    elif kind == 4:
        lines[row] = line[:at] + choose(rng, b"0", b"7", b".", b"-", b"e") + line[at + 1 :]
    elif kind == 5:
        lines[row] = line[:at] + choose(rng, *TEXTS) + line[at:]
    else:
        cells = re.split(rb"([,;\t ])", line)
        cells[int(rng.integers(len(cells)))] = choose(rng, b"", *TEXTS)
        lines[row] = b"".join(cells)
    return b"".join(lines)


def _damage_once(rng: Generator, data: bytes, others: Sequence[Path]) -> bytes:
    changed = bytearray(data)
    near_end = min(len(data), choose(rng, 64, 600, len(data)))  # headers and footers
    at = int(rng.integers(near_end))
    at = len(data) - 1 - at if chance(rng, 0.3) else at
    kind = int(rng.integers(9))
    if kind == 0:
        return data[:at]
    if kind == 1:
        for place in rng.integers(len(data), size=rng.integers(1, 9)):
            changed[place] ^= 1 << int(rng.integers(8))
    elif kind == 2:
        changed[at] = int(rng.integers(256))
    elif kind == 3:
        del changed[at : at + int(rng.integers(1, 60))]
    elif kind == 4:
        piece = changed[at : at + int(rng.integers(1, 60))]
        there = int(rng.integers(len(data)))
        changed[there:there] = piece
    elif kind == 5:
        other = others[int(rng.integers(len(others)))].read_bytes()
        start = int(rng.integers(len(other) + 1))
        changed[at : at + int(rng.integers(60))] = other[start : start + int(rng.integers(1, 200))]
    elif kind in (6, 7):
        _set_integers(rng, changed, at)
    else:
        changed[at : at + int(rng.integers(3))] = choose(rng, *TEXTS)
    return bytes(changed)


def _set_integers(rng: Generator, data: bytearray, at: int) -> None:
    """Overwrite one aligned integer, or a few in a row."""
    size = choose(rng, 1, 2, 4, 4, 8, 8)
    value = choose(rng, *INTEGERS) % 2 ** (8 * size)
    written = value.to_bytes(size, choose(rng, "little", "little", "big"))
    start = at // size * size
    end = min(len(data), start + size * choose(rng, 1, 1, 1, 4))
    data[start:end] = (written * 4)[: end - start]


def _inside(rng: Generator, sound: Path, data: bytes, others: Sequence[Path]) -> bytes | None:
    """The same file with damage to what it holds compressed; None if nothing can be taken out."""
    if sound.suffix in PACKED:
        return pack(sound.suffix, damage(rng, _unpack(sound.suffix, data), others))
    if sound.suffix == ".npz":
        return _inside_zip(rng, data, others)
    if data.startswith(HDF5) or data[512:].startswith(HDF5):
        return _inside_hdf5(rng, data, others)
    if sound.suffix == ".mat":
        return _inside_mat(rng, data, others)
    return None


def _unpack(kind: str, data: bytes) -> bytes:
    if kind == ".gz":
        return gzip.decompress(data)
    if kind == ".bz2":
        return bz2.decompress(data)
    if kind == ".xz":
        return lzma.decompress(data)
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        return bytes(stream.read())


def _inside_zip(rng: Generator, data: bytes, others: Sequence[Path]) -> bytes:
    """One member damaged, with a checksum that fits; sometimes one is lost, doubled or renamed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    at = int(rng.integers(len(members)))
    name, content = members[at]
    kind = int(rng.integers(8))
    if kind == 0:
        del members[at]
    elif kind == 1:
        members.append((name, damage(rng, content, others)))
    elif kind == 2:
        members[at] = (choose(rng, "X.npy", "data.npy", "y.npy", "format.npy"), content)
    else:
        members[at] = (name, damage(rng, content, others))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of names that stand twice
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content)
    return stream.getvalue()


def _inside_mat(rng: Generator, data: bytes, others: Sequence[Path]) -> bytes | None:
    """One variable of a MATLAB 5 file expanded, damaged and compressed again."""
    at, places = 128, []
    while at + 8 <= len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if kind == 15:
            places.append((at, size))
        at += 8 + size
    if not places:
        return None
    at, size = places[int(rng.integers(len(places)))]
    packed = zlib.compress(damage(rng, zlib.decompress(data[at + 8 : at + 8 + size]), others))
    return data[:at] + struct.pack("<II", 15, len(packed)) + packed + data[at + 8 + size :]


def _inside_hdf5(rng: Generator, data: bytes, others: Sequence[Path]) -> bytes | None:
    """The values of one array of numbers damaged, through whatever filters it has."""
    stream = io.BytesIO(data)
    with h5py.File(stream, "r+") as file:
        found: list[h5py.Dataset] = []

        def look(_: str, node: object) -> None:
            if isinstance(node, h5py.Dataset) and node.dtype.kind in "biuf" and node.size:
                found.append(node)

        file.visititems(look)
        if not found:
            return None
        node = found[int(rng.integers(len(found)))]
        if node.chunks is not None and chance(rng, 0.4):
            _damage_chunk(rng, node, others)
            file.close()
            return stream.getvalue()
        values = node[()]
        content = damage(rng, values.tobytes(), others)[: values.nbytes].ljust(values.nbytes, b"\0")
        changed = np.frombuffer(content, dtype=values.dtype).reshape(values.shape)
        if node.dtype.kind == "b":
            changed = np.frombuffer(content, dtype=np.uint8).reshape(values.shape) > 0
        node[...] = changed
    return stream.getvalue()


def _damage_chunk(rng: Generator, node: h5py.Dataset, others: Sequence[Path]) -> None:
    """One chunk, damaged before it is compressed; where it is, its length may change."""
    chunk = node.id.get_chunk_info(int(rng.integers(node.id.get_num_chunks())))
    stored = node.id.read_direct_chunk(chunk.chunk_offset)[1]
    if node.compression == "gzip" and not node.fletcher32:
        stored = zlib.compress(damage(rng, zlib.decompress(stored), others))
    elif node.compression is not None:
        stored = damage(rng, stored, others) or b"\0"
    else:
        stored = damage(rng, stored, others)[: chunk.size].ljust(chunk.size, b"\0")
    node.id.write_direct_chunk(chunk.chunk_offset, stored)
