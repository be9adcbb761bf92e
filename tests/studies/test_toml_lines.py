"""Errors point at lines."""

import pytest

from keepers.studies.toml_lines import line_of

TEXT = """\
title = "x"           # 1
[[data]]              # 2
source = "a"          # 3
[[data]]              # 4
source = "b"          # 5

[[methods]]           # 7
name = "SPCAFS"       # 8
grid = { gamma = [1], # 9
         p = [2] }    # 10
  [[methods.reduced]] # 11
  data = ["a"]        # 12
[[methods]]           # 13
name = "MCFS"         # 14
  [[methods.reduced]] # 15
  data = ["b"]        # 16
[growth]              # 17
samples = [1]         # 18
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 1),
        (("data", 1, "source"), 5),
        (("data", 0), 2),
        (("data", 1, "labels"), 4),  # not there: the table it belongs to
        (("methods", 0, "grid", "gamma", 0), 9),
        (("methods", 0, "grid", "p"), 10),
        (("methods", 0, "reduced", 0, "data", 0), 12),
        (("methods", 1, "reduced", 0, "data"), 16),
        (("growth", "samples"), 18),
        (("nothing",), 1),
        ((), 1),
    ],
)
def test_the_line_of_a_value_or_of_the_nearest_thing_around_it(path, line):
    assert line_of(TEXT, path) == line
