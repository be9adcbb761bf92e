"""Specifications: complete ones are read, faulty ones are refused with the key and the rule."""

import tomllib

import pytest
from keepers_studies.catalogue import catalogue
from keepers_studies.specification import STUDIES, as_spec, find_study, without_absent_data

from keepers.catalogue import METHODS
from keepers.exceptions import DataError

GOOD = """\
title = "good"
ks = [10, 20]
[[data]]
source = "srbct"
scaling = "unit-samples"
[[methods]]
name = "spcafs"
fixed = { n_components = "classes - 1" }
grid = { gamma = [1e-2, 1] }
default = { gamma = "scale" }
"""


@pytest.fixture
def read(tmp_path):
    """A specification from its text."""

    def from_file(text):
        path = tmp_path / "study.toml"
        path.write_text(text, encoding="utf-8")
        return as_spec(path)

    return from_file


def test_a_complete_specification_is_read(read):
    spec = read(GOOD)
    assert spec.data[0].title == "srbct"
    assert spec.repeats == 20
    assert spec.methods[0].name == "SPCAFS"  # the class, whichever name was given
    assert spec.methods[0].grid == {"gamma": [0.01, 1]}


@pytest.mark.parametrize("name", STUDIES)
def test_the_studies_that_come_with_keepers_are_valid(name):
    spec = as_spec(find_study(name))
    assert {"RandomScore", "VarianceScore"} <= {method.name for method in spec.methods}
    if name == "suite":
        assert {m.name for m in spec.methods} == {method.class_name for method in METHODS}
        assert {choice.source for choice in spec.data} == {*catalogue().index}


SWEEP = """
[[sweeps]]
name = "gamma"
method = "SPCAFS"
data = ["srbct"]
vary = "gamma"
values = [1, 2]
"""
REDUCED = '[[methods.reduced]]\ndata = ["AR"]\nreason = "slow"\nskip = true\n'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ks = [10, 20]", "ks = [10, 0]", r"ks\.1: .*greater than or equal to 1; got 0"),
        ("ks = [10, 20]", "ks = []", r"needs numbers of features: ks, shares, or both"),
        ("ks = [10, 20]", "ks = [10, 20", r"cannot be read as TOML"),
        ("unit-samples", "unit", r"data\.0\.scaling: .*got 'unit'"),
        ('"spcafs"', '"SPCA"', r"methods\.0\.name: There is no method 'SPCA'"),
        ("gamma = [1e-2, 1]", "gama = [1]", r"SPCAFS has no setting 'gama'; its settings"),
        ("gamma = [1e-2, 1]", "gamma = []", r"at least 1 item"),
        ('"srbct"', '"srbct"\ncolour = 3', r"data\.0\.colour: unknown setting"),
        ("[[methods]]", '[[data]]\nsource = "srbct"\n[[methods]]', r"'srbct' is used twice"),
        ('"scale" }\n', '"scale" }\n' + REDUCED, "method 'SPCAFS' names the data set 'AR'"),
        (
            '"scale" }\n',
            '"scale" }\n' + SWEEP + "grid = { gamma = [3, 4] }\n",
            "'gamma' is varied and cannot be in the grid",
        ),
    ],
)
def test_a_fault_is_refused_with_its_key_and_rule(read, old, new, message):
    assert old in GOOD
    with pytest.raises(DataError, match=message):
        read(GOOD.replace(old, new, 1))


def test_every_fault_is_named_at_once():
    with pytest.raises(DataError) as refusal:
        as_spec({"title": "t", "ks": [0], "data": [], "metrics": [{"name": "b"}]})
    for key in ("ks.0", "data", "metrics.0.name", "methods"):
        assert f"{key}: " in str(refusal.value)


def test_a_missing_or_binary_file_is_an_error_of_one_sentence(tmp_path):
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="cannot be read as TOML"):
        as_spec(tmp_path / "binary.toml")
    with pytest.raises(DataError, match=r"study 'papr'\. Give one of paper, quick, suite"):
        find_study("papr")


def test_data_sets_that_are_not_on_this_machine_can_be_skipped(tmp_path, monkeypatch):
    monkeypatch.setenv("KEEPERS_DATA", str(tmp_path))
    more = GOOD.replace("[[methods]]", '[[data]]\nsource = "Imm40"\n[[methods]]')
    spec, missing = without_absent_data(as_spec(tomllib.loads(more)))
    assert [choice.title for choice in spec.data] == ["srbct"]
    assert missing == ["Imm40"]


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


def test_a_reading_scales_every_table_and_can_reduce_grids_sweeps_and_repeats(read):
    spec = read(GOOD + SWEEP + READING)
    reading = spec.under(spec.readings[0])
    assert [choice.scaling for choice in reading.data] == ["0-255"]
    assert (reading.repeats, reading.readings) == (5, [])
    assert reading.methods[0].reduction_for("srbct").grid == {"gamma": [1.0]}
    assert reading.sweeps[0].data == []
    with pytest.raises(DataError, match="names the sweep 'nothing'"):
        read(GOOD + READING.replace("gamma = []", "nothing = []"))
