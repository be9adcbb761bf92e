"""Specifications: complete ones are read, faulty ones are refused with the line."""

from pathlib import Path

import pytest

from keepers.data.catalogue import catalogue
from keepers.exceptions import DataError
from keepers.methods import METHODS, all_selectors
from keepers.studies.specification import STUDIES, comparison_spec, find_study, line_of, read_spec

GOOD = """\
title = "good"
ks = [10, 20]
[[data]]
source = "srbct"
scaling = "unit-samples"
[[methods]]
name = "SPCAFS"
fixed = { n_components = "classes - 1" }
grid = { gamma = [1e-2, 1] }
default = { gamma = "scale" }
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_complete_specification_is_read(tmp_path):
    spec = read_spec(written(tmp_path, GOOD))
    assert spec.data[0].title == "srbct"
    assert spec.repeats == 20
    assert spec.methods[0].grid == {"gamma": [0.01, 1]}


@pytest.mark.parametrize("name", STUDIES)
def test_the_studies_that_come_with_keepers_are_valid(name):
    spec = read_spec(find_study(name))
    compared = {method.name for method in spec.methods}
    paper = {"SPCAFS", "LaplacianScore", "MCFS", "UDFS", "EUFS", "DGUFS", "SOGFS", "RNE"}
    baselines = {"RandomScore", "VarianceScore", "AllFeatures"}
    if name == "suite":
        assert compared == {method.class_name for method in METHODS}
        assert {choice.source for choice in spec.data} == {entry.name for entry in catalogue()}
    elif name != "fseval":
        assert compared == paper | baselines


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ks = [10, 20]", "ks = [10, 0]", r"line 2: ks\.1: .*greater than or equal to 1; got 0"),
        ("ks = [10, 20]", "ks = []", r"needs numbers of features: ks, shares, or both"),
        ("ks = [10, 20]", "shares = [0.1, 2.0]", r"line 2: shares\.1: .*less than or equal to 1"),
        ("ks = [10, 20]", "ks = [10, 20", r"not valid TOML"),
        (
            "unit-samples",
            "unit",
            r"line 5: data\.0\.scaling: scaling must be one of raw, .*got 'unit'",
        ),
        (
            'name = "SPCAFS"',
            'name = "SPCA"',
            r"line 7: methods\.0\.name: There is no method 'SPCA'",
        ),
        (
            "gamma = [1e-2, 1]",
            "gama = [1]",
            r"line 6: .*SPCAFS has no setting 'gama'; its settings",
        ),
        ("gamma = [1e-2, 1]", "gamma = []", r"line 9: .*at least 1 item"),
        (
            'source = "srbct"',
            'source = "srbct"\ncolour = 3',
            r"line 5: data\.0\.colour: there is no",
        ),
        ('title = "good"', 'title = "good"\nrepeats = 0', r"line 2: repeats: .*got 0"),
        (
            "[[methods]]",
            '[[data]]\nsource = "srbct"\n[[methods]]',
            r"data sets must have different names; 'srbct' is used twice",
        ),
    ],
)
def test_a_fault_is_refused_with_its_line_and_rule(tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(DataError, match=message):
        read_spec(written(tmp_path, GOOD.replace(old, new, 1)))


def test_a_reduction_for_an_unknown_data_set_is_refused(tmp_path):
    text = GOOD + '[[methods.reduced]]\ndata = ["AR"]\nreason = "slow"\nskip = true\n'
    with pytest.raises(DataError, match="method 'SPCAFS' names the data set 'AR'"):
        read_spec(written(tmp_path, text))


def test_every_fault_is_told_at_once(tmp_path):
    text = GOOD.replace("[10, 20]", "[0]").replace('source = "srbct"', "source = 3")
    with pytest.raises(DataError) as caught:
        read_spec(written(tmp_path, text))
    assert len(str(caught.value).splitlines()) == 2


def test_a_missing_or_binary_file_is_an_error_of_one_sentence(tmp_path):
    with pytest.raises(DataError, match="There is no file"):
        read_spec(tmp_path / "absent.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="cannot be read as text"):
        read_spec(tmp_path / "binary.toml")
    with pytest.raises(DataError, match=r"no study 'papr'\. Give one of paper, quick, suite"):
        find_study("papr")


SWEEP = """
[[sweeps]]
name = "gamma"
method = "SPCAFS"
data = ["srbct"]
vary = "gamma"
values = [1, 2]
"""


def test_a_sweep_named_like_the_main_section_is_refused(tmp_path):
    path = written(tmp_path, GOOD + SWEEP.replace('name = "gamma"', 'name = "comparison"'))
    with pytest.raises(DataError, match="a sweep cannot be named 'comparison'"):
        read_spec(path)


def test_a_setting_cannot_be_varied_and_searched_in_the_same_sweep(tmp_path):
    path = written(tmp_path, GOOD + SWEEP + "grid = { gamma = [3, 4] }\n")
    with pytest.raises(DataError, match="'gamma' is varied and cannot be in the grid"):
        read_spec(path)
    read_spec(written(tmp_path, GOOD + SWEEP + "grid = { p = [0.5, 1] }\n"))


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


def test_a_method_may_be_named_as_on_the_command_line_and_is_stored_under_its_class(tmp_path):
    spec = read_spec(written(tmp_path, GOOD.replace('name = "SPCAFS"', 'name = "spcafs"')))
    assert spec.methods[0].name == "SPCAFS"


OPTIONS = {
    "labels": None,
    "identifier": None,
    "drop": [],
    "scaling": "raw",
    "ks": [5],
    "repeats": 2,
    "seed": 0,
    "time_limit": 60.0,
}


def test_compare_knows_every_method_and_adds_the_baselines():
    spec = comparison_spec("srbct", methods="All", tune=True, **OPTIONS)
    assert {method.name for method in spec.methods} == set(all_selectors())
    some = comparison_spec("srbct", methods="MCFS, lapscore", tune=False, **OPTIONS)
    titles = ["LapScore", "MCFS", "Variance", "Random", "All features"]
    assert [method.title for method in some.methods] == titles
    assert all(method.grid == {} for method in some.methods)
