"""Results in one small file, for a later run and for others."""

import lzma
from dataclasses import replace

import pytest

from keepers.exceptions import DataError
from keepers.studies import packed_results
from keepers.studies.packed_results import PACKED, write_packed
from keepers.studies.plan import FitTask, Outcome
from keepers.studies.store import Store

TASK = FitTask("d", "f", "SPCAFS", {"gamma": 1.0}, (5, 10), 2, 0)
OUTCOME = Outcome(
    "ok",
    fit_seconds=0.5,
    judgements=({"n_features": 5, "acc": [0.5, 0.25], "nmi": [0.1, 0.2]},),
    objective=(3.0, 2.0),
    n_iter=2,
    top=(4, 1),
)


def test_packed_results_serve_as_an_earlier_run(tmp_path):
    other = replace(OUTCOME, judgements=({"n_features": 5, "acc": [1 / 3], "nmi": [2 / 3]},))
    with Store(tmp_path / "then" / "results.sqlite") as store:
        store.add(TASK, OUTCOME)
        store.add(replace(TASK, seed=1), other)
        store.add_run({"machine": "then"})
        (tmp_path / "given").mkdir()
        write_packed(tmp_path / "given" / PACKED, store.rows())
    with Store(tmp_path / "now" / "results.sqlite") as store:
        assert store.add_results_of(tmp_path / "given") == 2
        assert store.add_results_of(tmp_path / "given" / PACKED) == 0
        found = store.outcomes()
        assert found[TASK.key] == replace(OUTCOME, top=())
        (judged,) = found[replace(TASK, seed=1).key].judgements
        assert judged["acc"] == [pytest.approx(1 / 3, abs=1e-8)]
        assert [run["machine"] for run in store.runs()] == ["then"]


@pytest.mark.parametrize(
    "content",
    [
        b"not packed at all",
        lzma.compress(b"no JSON\n"),
        lzma.compress(b""),
        lzma.compress(b"[1, 2]\n"),
        lzma.compress(b'{"format": "something else", "layout": 1}\n'),
        lzma.compress(b'{"format": "keepers results", "layout": 1}\n{"key": "a"}\n'),
        lzma.compress(b'{"format": "keepers results", "layout": 1}\n7\n'),
        lzma.compress(b'{"format": "keepers results", "layout": 1}\n' * 50)[:-20],
    ],
)
def test_packed_results_that_are_damaged_are_refused_whole(tmp_path, content):
    (tmp_path / PACKED).write_bytes(content)
    with Store(tmp_path / "now" / "results.sqlite") as store:
        with pytest.raises(DataError, match=PACKED):
            store.add_results_of(tmp_path / PACKED)
        assert store.outcomes() == {}


def test_packed_results_of_another_layout_or_without_end_are_refused(tmp_path, monkeypatch):
    path = tmp_path / PACKED
    path.write_bytes(lzma.compress(b'{"format": "keepers results", "layout": 9}\n'))
    with Store(tmp_path / "now" / "results.sqlite") as store:
        with pytest.raises(DataError, match="layout 9"):
            store.add_results_of(path)
        monkeypatch.setattr(packed_results, "MOST_BYTES", 10)
        with pytest.raises(DataError, match="holds more than"):
            store.add_results_of(path)
