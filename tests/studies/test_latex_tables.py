"""Tables for a paper: numbers of the comparison, and names that LaTeX cannot trip over."""

import pytest

from keepers.studies.latex_tables import escape, score_table, write_latex
from keepers.studies.results import StudyResults
from studies.made_up_study import study
from studies.two_tables import CONTENT, SIZES, judge


def test_the_best_of_each_column_is_bold_and_a_gap_is_a_dash():
    cells = {"A": {"x": 0.5, "y": 0.25}, "B": {"x": None, "y": 0.75}}
    lines = score_table(cells, ["x", "y"]).splitlines()
    assert lines[0] == r"\begin{tabular}{lrr}"
    assert lines[4] == r"A & \textbf{0.500} & 0.250 \\"
    assert lines[5] == r"B & -- & \textbf{0.750} \\"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a_b", r"a\_b"),
        ("50 % & more", r"50 \% \& more"),
        (r"\input{x}", r"\textbackslash{}input\{x\}"),
        ("x^2~", r"x\textasciicircum{}2\textasciitilde{}"),
    ],
)
def test_names_are_escaped(name, shown):
    assert escape(name) == shown


def test_a_study_writes_a_table_for_each_tuning_and_measure(tmp_path):
    results = StudyResults(study(CONTENT, judge, sizes=SIZES))
    write_latex(results, [], tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"acc-tuned.tex", "acc-default.tex", "nmi-tuned.tex", "nmi-default.tex"}
    mean = results.tuned.mean_over_k("one", "SPCAFS", "acc")
    assert f"{mean:.3f}" in (tmp_path / "acc-tuned.tex").read_text()
