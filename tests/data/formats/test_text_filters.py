"""Filters of text give the same whatever the sizes of the pieces that they read."""

import io

import pytest

from keepers.data.formats import text_filters
from keepers.exceptions import DataError

TEXT = '# one\n  a "b c"\t d\r\n1   2 3 \n#two\n\n"x"" y" 4 5\n  6 7 8'


class _Trickle(io.BytesIO):
    """A file that hands over few bytes at a time."""

    def read(self, size=-1):
        return super().read(3 if size is None or size < 0 else min(size, 3))


@pytest.mark.parametrize("kind", [io.BytesIO, _Trickle])
def test_comments_become_empty_lines(kind):
    found = text_filters.comments_blanked(kind(TEXT.encode()), "#").read().decode()
    assert found.split("\n") == ["" if line.startswith("#") else line for line in TEXT.split("\n")]


@pytest.mark.parametrize("kind", [io.BytesIO, _Trickle])
def test_runs_of_blanks_become_tabs_but_not_in_quotes(kind):
    stream = text_filters.comments_blanked(kind(TEXT.encode()), "#")
    found = text_filters.runs_of_blanks_as_tabs(stream).read().decode()
    assert found == '\na\t"b c"\td\n1\t2\t3\n\n\n"x"" y"\t4\t5\n6\t7\t8'


@pytest.mark.parametrize("kind", [io.BytesIO, _Trickle])
def test_characters_that_are_cut_by_a_piece_are_decoded(kind):
    text = "größe, 基因\n" * 5
    stream = text_filters.decoded(kind(text.encode("utf-16")), "utf-16")
    assert stream.read().decode() == text
    with pytest.raises(DataError, match="not in the encoding utf-16"):
        text_filters.decoded(kind(text.encode("utf-16")[:-1]), "utf-16").read()


def test_line_ends_and_lines_in_general():
    assert text_filters.unified_line_ends(io.BytesIO(b"a\rb")).read() == b"a\nb"
    upper = text_filters.in_whole_lines(_Trickle(b"abcd\nefghij\n\nk"), bytes.upper)
    assert upper.read() == b"ABCD\nEFGHIJ\n\nK"


def test_a_line_without_end_is_not_awaited(monkeypatch):
    monkeypatch.setattr(text_filters, "LONGEST_LINE", 10)
    with pytest.raises(DataError, match="must be shorter than 10 bytes"):
        text_filters.in_whole_lines(_Trickle(b"x" * 100), bytes.upper).read()
