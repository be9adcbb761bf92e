"""Specifications: complete ones are read, faulty ones are refused with the key and the rule."""

import tomllib
from pathlib import Path

import pytest
from keepers_studies.specification import STUDIES, as_spec, find_study, without_absent_data

from keepers.catalogue import METHODS
from keepers.datasets import catalogue
from keepers.exceptions import DataError

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
    spec = as_spec(written(tmp_path, GOOD))
    assert spec.data[0].title == "srbct"
    assert spec.repeats == 20
    assert spec.methods[0].grid == {"gamma": [0.01, 1]}


@pytest.mark.parametrize("name", STUDIES)
def test_the_studies_that_come_with_keepers_are_valid(name):
    spec = as_spec(find_study(name))
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
        ("ks = [10, 20]", "ks = [10, 0]", r"ks\.1: .*greater than or equal to 1; got 0"),
        ("ks = [10, 20]", "ks = []", r"needs numbers of features: ks, shares, or both"),
        ("ks = [10, 20]", "shares = [0.1, 2.0]", r"shares\.1: .*less than or equal to 1"),
        ("ks = [10, 20]", "ks = [10, 20", r"not valid TOML"),
        (
            "unit-samples",
            "unit",
            r"data\.0\.scaling: .*got 'unit'",
        ),
        (
            'name = "SPCAFS"',
            'name = "SPCA"',
            r"methods\.0\.name: There is no method 'SPCA'",
        ),
        (
            "gamma = [1e-2, 1]",
            "gama = [1]",
            r".*SPCAFS has no setting 'gama'; its settings",
        ),
        ("gamma = [1e-2, 1]", "gamma = []", r".*at least 1 item"),
        (
            'source = "srbct"',
            'source = "srbct"\ncolour = 3',
            r"data\.0\.colour: there is no",
        ),
        ('title = "good"', 'title = "good"\nrepeats = 0', r"repeats: .*got 0"),
        (
            "[[methods]]",
            '[[data]]\nsource = "srbct"\n[[methods]]',
            r"data sets must have different names; 'srbct' is used twice",
        ),
    ],
)
def test_a_fault_is_refused_with_its_key_and_rule(tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(DataError, match=message):
        as_spec(written(tmp_path, GOOD.replace(old, new, 1)))


def test_a_reduction_for_an_unknown_data_set_is_refused(tmp_path):
    text = GOOD + '[[methods.reduced]]\ndata = ["AR"]\nreason = "slow"\nskip = true\n'
    with pytest.raises(DataError, match="method 'SPCAFS' names the data set 'AR'"):
        as_spec(written(tmp_path, text))


def test_every_fault_is_told_at_once(tmp_path):
    text = GOOD.replace("[10, 20]", "[0]").replace('source = "srbct"', "source = 3")
    with pytest.raises(DataError) as caught:
        as_spec(written(tmp_path, text))
    assert len(str(caught.value).splitlines()) == 2


def test_a_missing_or_binary_file_is_an_error_of_one_sentence(tmp_path):
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="cannot be read as text"):
        as_spec(tmp_path / "binary.toml")
    with pytest.raises(DataError, match=r"no study 'papr'\. Give one of paper, quick, suite"):
        find_study("papr")


READING = """
[[readings]]
name = "grey"
scaling = "0-255"
repeats = 5
sweep_data = { gamma = [] }
[[readings.reduced]]
methods = ["SPCAFS"]
grid = { gamma = [1.0] }
reason = "to save time"
"""
SWEEP = """
[[sweeps]]
name = "gamma"
method = "SPCAFS"
data = ["srbct"]
vary = "gamma"
values = [1, 2]
"""


def test_a_setting_cannot_be_varied_and_searched_in_the_same_sweep(tmp_path):
    path = written(tmp_path, GOOD + SWEEP + "grid = { gamma = [3, 4] }\n")
    with pytest.raises(DataError, match="'gamma' is varied and cannot be in the grid"):
        as_spec(path)
    as_spec(written(tmp_path, GOOD + SWEEP + "grid = { p = [0.5, 1] }\n"))


def test_a_method_may_be_named_as_on_the_command_line_and_is_stored_under_its_class(tmp_path):
    spec = as_spec(written(tmp_path, GOOD.replace('name = "SPCAFS"', 'name = "spcafs"')))
    assert spec.methods[0].name == "SPCAFS"


def test_every_fault_of_a_mapping_is_named():
    with pytest.raises(DataError) as refusal:
        as_spec({"title": "t", "ks": [0], "data": [], "metrics": [{"metric": "b"}]})
    for key in ("ks.0", "data", "metrics.0.metric", "methods"):
        assert f"{key}: " in str(refusal.value)


def test_data_sets_that_are_not_on_this_machine_can_be_skipped(tmp_path, monkeypatch):
    monkeypatch.setenv("KEEPERS_DATA", str(tmp_path))
    more = '[[data]]\nsource = "Imm40"\n[[methods]]'
    spec, missing = without_absent_data(
        as_spec({**tomllib.loads(GOOD.replace("[[methods]]", more))})
    )
    assert [choice.title for choice in spec.data] == ["srbct"]
    assert missing == ["Imm40"]


def test_a_reading_scales_every_table_and_can_reduce_grids_sweeps_and_repeats(tmp_path):
    spec = as_spec(written(tmp_path, GOOD + SWEEP + READING))
    read = spec.under(spec.readings[0])
    assert [c.scaling for c in read.data] == ["0-255"]
    assert (read.repeats, read.readings) == (5, [])
    assert read.methods[0].reduction_for("srbct").grid == {"gamma": [1.0]}
    assert read.methods[0].repeats is None
    assert read.sweeps[0].data == []
    with pytest.raises(DataError, match="names the sweep 'nothing'"):
        as_spec(written(tmp_path, GOOD + READING.replace("gamma = []", "nothing = []")))
