"""Layouts of files that people have, with made-up values: each is read as it is meant.

Every layout goes through `keepers check` and, with the options that it proposes, through
`keepers select`.
"""

import csv
import io
import json
import shlex

import numpy as np
import pandas as pd
import pytest
from scipy.io import mmwrite
from scipy.sparse import coo_array
from sklearn.datasets import load_diabetes

RNG = np.random.default_rng(0)
N_GENES, N_PLANTED = 200, 20
SAMPLES = [f"{group}{at}" for group in "AB" for at in (1, 2, 3, 4)]


def genes_in_rows(level=3.0):
    """Counts of genes in samples of two groups; the first genes differ between the groups."""
    rng = np.random.default_rng(1)
    rates = np.exp(rng.normal(level, 1.5, N_GENES))[:, None] * np.ones(8)
    rates[:N_PLANTED] *= np.repeat([0.2, 5.0], 4)
    return pd.DataFrame(rng.poisson(rates), columns=SAMPLES)


def feature_counts(level=3.0):
    """The output of featureCounts: a comment, five columns about a gene, then the samples."""
    start = RNG.integers(1, 10**8, N_GENES)
    frame = pd.DataFrame({"Geneid": [f"ENSG{at:06}" for at in range(N_GENES)]})
    frame["Chr"] = RNG.choice(["chr1", "chr2;chr2", "chrX"], N_GENES)
    frame["Start"], frame["End"] = start, start + RNG.integers(500, 90_000, N_GENES)
    frame["Strand"] = RNG.choice(["+", "-"], N_GENES)
    frame["Length"] = RNG.integers(300, 9_000, N_GENES)
    counts = pd.concat([frame, genes_in_rows(level).add_suffix(".bam")], axis=1)
    return "# Program:featureCounts v2.0.1\n" + counts.to_csv(sep="\t", index=False)


def core_facility():
    """Symbol and description beside counts, which are mostly zero."""
    counts = genes_in_rows(level=-0.5)
    assert 0.3 < (counts == 0).mean(axis=None) < 0.7
    counts.insert(0, "gene_id", [f"ENSG{at:06}" for at in range(N_GENES)])
    counts.insert(1, "Symbol", [f"SYM{at // 2}" for at in range(N_GENES)])
    counts.insert(2, "Description", [f"kinase, subunit {at % 90}" for at in range(N_GENES)])
    return counts.to_csv(sep="\t", index=False)


def protein_groups():
    """MaxQuant: text and numbers on proteins, several measurements a sample, lines cut short."""
    intensity = 1e6 * genes_in_rows().to_numpy()
    peptides = RNG.integers(1, 30, (N_GENES, 8))
    names = ["Protein IDs", "Fasta headers", "Mol. weight [kDa]"]
    for kind in ("Peptides", "Razor + unique peptides", "Unique peptides"):
        names += [f"{kind} {sample}" for sample in SAMPLES]
    names += ["Intensity", *(f"Intensity {sample}" for sample in SAMPLES)]
    names += [f"LFQ intensity {sample}" for sample in SAMPLES]
    lines = ["\t".join([*names, "Reverse", "id", "Taxonomy IDs"])]
    for at in range(N_GENES):
        weight = f"{RNG.uniform(8, 300):.2f}"
        cells = [f"P{at:05};Q{at:05}", f"sp|P{at:05}|protein {at}", weight]
        cells += [*peptides[at], *peptides[at], *peptides[at], 2 * intensity[at].sum()]
        cells += [*(2 * intensity[at]), *intensity[at], "+" if at % 9 == 0 else "", at]
        lines.append("\t".join(map(str, cells)) + ("\t9606" if at % 3 == 0 else ""))
    return "\n".join(lines) + "\n"


def cells(n_genes=1500, n_cells=60):
    """Counts of single cells, genes in rows: nine in ten are 0, and most levels differ little."""
    rng = np.random.default_rng(2)
    rates = np.exp(rng.normal(-3.4, 1.4, n_genes))[:, None] * rng.gamma(5.0, 0.2, n_cells)
    rates[:N_PLANTED] += np.repeat([0.0, 8.0], n_cells // 2)
    return rng.poisson(rates)


def coffee_survey(n=150):
    """Several answers in a cell, and a tick box for each of them."""
    group = RNG.integers(0, 2, n)
    places = ["At home", "At a cafe", "On the go", "None of these"]
    chosen = RNG.random((n, 4)) < np.where(group[:, None] == [0, 1, 1, 0], 0.7, 0.2)
    frame = pd.DataFrame({"Submission ID": [f"{at * 7919 % 99_991:05}x" for at in range(n)]})
    frame["What is your age?"] = RNG.choice(["18-24", "25-34", "35-44", ">65"], n)
    cells = [", ".join(np.array(places)[row]) for row in chosen]
    frame["Where do you drink?"] = cells
    for at, place in enumerate(places):
        frame[f"Where do you drink? ({place})"] = np.where(chosen[:, at], "TRUE", "")
    frame["Cups"] = 1 + 2 * group + RNG.integers(0, 2, n)
    frame["Bitterness"] = 1 + 3 * group + RNG.integers(0, 2, n)
    return frame


def thanksgiving_survey(n=80):
    """SurveyMonkey: a line of questions, a line of answers; ticked answers repeat their text."""
    question = "Which pies? Please select all that apply."
    first = ["RespondentID", "Did you celebrate?", question, "", "", "How far?", "Age", "Cost"]
    second = ["", "Response", "Apple", "Don’t know", "Other (please specify)", *["Response"] * 3]
    rows = [first, second]
    for at in range(n):
        group = at % 2
        apple = "Apple" if RNG.random() < (0.8 if group else 0.2) else ""
        unsure = "Don’t know" if RNG.random() < 0.3 else ""
        numbers = [10 * group + RNG.integers(0, 5), 20 + RNG.integers(0, 60), 50 * group + 5]
        rows.append([f"4337{at:06}", ["Yes", "No"][at % 3 == 0], apple, unsure, "", *numbers])
    rows[5][4] = "Cherry"
    return text_of(rows)


def qualtrics_survey(n=60):
    """Qualtrics: names, questions, identifiers."""
    rows = [
        ["StartDate", "ResponseId", "Q1", "Q2_1", "Q3"],
        ["Start Date", "Response ID", "How tall are you?", "Would you, if asked - Run", "Weight?"],
        [json.dumps({"ImportId": f"QID{at}"}) for at in range(5)],
    ]
    for at in range(n):
        cells = [150 + 20 * (at % 2), 1 + at % 5, 50 + RNG.integers(0, 40)]
        rows.append([f"2024-01-{1 + at % 28:02} 10:00:00", f"R_{at * 7919 % 9973}", *cells])
    return text_of(rows)


def text_of(rows, sep=","):
    stream = io.StringIO()
    csv.writer(stream, delimiter=sep, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def ames_like(n=120):
    """Houses: an order number, words, and columns that are almost empty."""
    size = RNG.normal(1500, 400, n).round()
    frame = pd.DataFrame({"Order": np.arange(1, n + 1), "PID": RNG.permutation(10**6)[:n] + 526e6})
    frame["MS Zoning"] = RNG.choice(["RL", "RM", "FV"], n)
    frame["Lot Frontage"] = np.where(RNG.random(n) < 0.15, np.nan, (size / 20).round())
    frame["Pool QC"] = np.where(np.arange(n) % 50 == 0, "Gd", None)
    frame["Pool QC"] = frame["Pool QC"].where(frame.index != 50, "Ex")
    frame["Gr Liv Area"] = size
    frame["Year Built"] = RNG.integers(1900, 2010, n)
    frame["SalePrice"] = (100 * size + RNG.normal(0, 9_000, n)).round()
    return frame.astype({"PID": int}).to_csv(index=False, na_rep="NA")


def acs_like(n=250):
    """Counties: distinct names in rows, and several columns that are shares of 100 %."""
    shares = RNG.dirichlet([8, 5, 6, 3, 4], n) * 100
    jobs = ["Professional", "Service", "Office", "Construction", "Production"]
    frame = pd.DataFrame(shares.round(1), columns=jobs)
    frame.insert(0, "County", [f"County {at}" for at in range(n)])
    frame.insert(1, "State", RNG.choice(["Ohio", "Texas", "Maine"], n))
    frame["Income"] = (20_000 + 900 * shares[:, 0] + RNG.normal(0, 3_000, n)).round()
    frame["TotalPop"] = RNG.integers(1_000, 10**6, n)
    return frame.to_csv(index=False)


def engines():
    """C-MAPSS: no header, blanks between the cells and at the end of every line."""
    lines = []
    for unit in range(1, 6):
        for cycle in range(1, 31):
            sensors = [520 + cycle * at / 30 + RNG.normal(0, 0.1) for at in range(5)]
            lines.append(f"{unit} {cycle} 100.0 " + " ".join(f"{x:.2f}" for x in sensors) + "  ")
    return "\n".join(lines) + "\n"


def pump(n=100):
    """SKAB: semicolons, a column of times, and marks of anomalies."""
    load = RNG.normal(size=n)
    frame = pd.DataFrame({"datetime": pd.date_range("2020-03-09 10:14:33", periods=n, freq="s")})
    for name in ("Accelerometer1RMS", "Current", "Pressure"):
        frame[name] = load + 0.2 * RNG.normal(size=n)
    frame["Temperature"] = RNG.normal(70, 1, n)
    frame["anomaly"] = (np.arange(n) > 60).astype(float)
    return frame.to_csv(index=False, sep=";")


def spectra(n=40):
    """Absorbance, which falls along the whole spectrum; the header is wavelengths."""
    wavelengths = 400 + np.cumsum(np.tile([1.9, 2.0, 2.1], 10))
    height = 1 + RNG.random((n, 1))
    values = height * np.exp(-(wavelengths - 400) / 40) + 0.0001 * RNG.random((n, 30))
    return text_of([[f"{at:.1f}" for at in wavelengths], *values.round(6).tolist()])


def run(quick_keepers, name, *options):
    """What `check` finds, and the kept features of the command that it proposes."""
    checked = quick_keepers("check", name, "--json", *options)
    assert checked.returncode == 0, checked.stderr
    found = json.loads(checked.stdout)
    words = shlex.split(found["command"])[1:]
    done = quick_keepers(*words, "-k", 3, "--scores", "scores.csv", "--out", "kept.csv", "--force")
    assert done.returncode == 0, done.stderr
    return found, pd.read_csv("kept.csv"), checked.stderr


def about(found):
    return {finding["about"]: finding for finding in found["findings"]}


@pytest.mark.parametrize("level", [3.0, -0.5], ids=["deep", "mostly zeros"])
def test_feature_counts(quick_keepers, tmp_path, level):
    (tmp_path / "counts.txt").write_text(feature_counts(level))
    found, kept, _ = run(quick_keepers, "counts.txt")
    words = ["--transpose", "--annotation", "Chr,Start,End,Strand,Length"]
    assert shlex.split(found["command"])[3:] == words
    assert list(kept["sample"]) == [f"{sample}.bam" for sample in SAMPLES]
    genes = pd.read_csv("scores.csv")["feature"]
    assert set(genes) == {f"ENSG{at:06}" for at in range(N_GENES)}
    assert "Features seem to be in rows" in quick_keepers("select", "counts.txt", "-k", 3).stderr
    without = quick_keepers("select", "counts.txt", "--transpose", "-k", 3, "--out", "k.csv")
    assert "'Chr', 'Start', 'End', 'Strand', 'Length'" in without.stderr
    assert list(pd.read_csv("k.csv")["sample"]) == list(kept["sample"])


def test_counts_of_a_core_facility_can_be_called_by_their_symbols(quick_keepers, tmp_path):
    (tmp_path / "counts.tsv").write_text(core_facility())
    found, kept, _ = run(quick_keepers, "counts.tsv")
    assert found["command"].endswith("--transpose --annotation Symbol,Description")
    assert list(kept["sample"]) == SAMPLES
    done = quick_keepers(
        *("select", "counts.tsv", "--transpose", "--id", "Symbol", "--make-unique"),
        *("--annotation", "gene_id,Symbol,Descr*", "--scores", "symbols.csv", "-k", 3),
    )
    assert done.returncode == 0, done.stderr
    assert {"SYM0", "SYM0.1"} <= set(pd.read_csv("symbols.csv")["feature"])


def test_max_quant(quick_keepers, tmp_path):
    (tmp_path / "proteinGroups.txt").write_text(protein_groups())
    found, kept, said = run(quick_keepers, "proteinGroups.txt")
    assert "Lines that end before the last column: 133, the first of them line 3." in said
    assert list(kept["sample"]) == [f"LFQ intensity {sample}" for sample in SAMPLES]
    assert found["kinds"]["Reverse"] == "tick"
    by_pattern = quick_keepers(
        *("select", "proteinGroups.txt", "--transpose", "--annotation", "*eptides*,Intensity*"),
        *("--annotation", "Fasta headers,Mol*,Reverse,id,Tax*", "-k", 3, "--out", "p.csv"),
    )
    assert by_pattern.returncode == 0, by_pattern.stderr
    pd.testing.assert_frame_equal(pd.read_csv("p.csv"), kept)


@pytest.mark.parametrize("suffix", ["csv", "mtx"])
def test_genes_of_single_cells_in_rows(quick_keepers, tmp_path, suffix):
    counts = cells()
    assert (counts == 0).mean() > 0.85
    names = [f"CELL{at}" for at in range(counts.shape[1])]
    if suffix == "mtx":
        mmwrite(tmp_path / "cells.mtx", coo_array(counts))
        names = [str(at) for at in range(1, len(names) + 1)]
    else:
        frame = pd.DataFrame(counts, columns=names)
        frame.insert(0, "gene", [f"GENE{at}" for at in range(len(counts))])
        frame.to_csv("cells.csv", index=False)
    found, kept, _ = run(quick_keepers, f"cells.{suffix}")
    assert found["command"].endswith("--transpose")
    assert ("without names" in about(found)["orientation"]["sentence"]) == (suffix == "mtx")
    assert len(kept) == len(names)


def test_documents_in_rows_are_not_taken_for_genes(quick_keepers, tmp_path):
    """Lengths of documents differ, so terms agree a little, and words differ more."""
    rng = np.random.default_rng(3)
    rates = np.exp(rng.normal(-3.5, 1.5, 60)) * rng.gamma(4.0, 0.25, (1500, 1))
    frame = pd.DataFrame(rng.poisson(rates), columns=[f"word{at}" for at in range(60)])
    frame.insert(0, "document", [f"d{at}" for at in range(1500)])
    frame.to_csv("words.csv", index=False)
    found = json.loads(quick_keepers("check", "words.csv", "--json").stdout)
    assert "orientation" not in about(found)


def test_a_survey_with_tick_boxes_and_several_answers(quick_keepers, tmp_path):
    frame = coffee_survey()
    frame.to_csv("coffee.csv", index=False)
    found, _, _ = run(quick_keepers, "coffee.csv")
    kinds = found["kinds"]
    assert kinds["Where do you drink?"] == "choices"
    ticked = [name for name in frame if "(" in name]
    assert [kinds[name] for name in ticked] == ["tick"] * 4
    assert "constant columns" not in about(found)
    kept = quick_keepers(
        *("select", "coffee.csv", "-k", 8, "--missing", "mean"),
        *("--out", "c.csv", "--save", "c.json"),
    )
    assert kept.returncode == 0, kept.stderr
    written = pd.read_csv("c.csv", dtype=str, keep_default_na=False)
    place = "Where do you drink?"
    assert list(written[place]) == list(frame[place]), "cells as they were"
    assert list(written[ticked[0]].str.upper()) == list(frame[ticked[0]])
    again = quick_keepers("apply", "c.json", "coffee.csv", "--out", "d.csv")
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize("encoding", ["utf-8", "mac_roman", "cp1252"])
def test_a_survey_with_two_lines_of_names_in_any_encoding(quick_keepers, tmp_path, encoding):
    (tmp_path / "thanksgiving.csv").write_bytes(thanksgiving_survey().encode(encoding))
    found, _, said = run(quick_keepers, "thanksgiving.csv")
    kinds = found["kinds"]
    question = "Which pies? Please select all that apply."
    assert found["n_rows"] == 80
    assert kinds[f"{question}: Apple"] == kinds[f"{question}: Don’t know"] == "tick"
    assert kinds["How far?: Response"] == "number"
    assert kinds["RespondentID"] == "identifier"
    assert "--header-rows 1" in said
    assert ("--encoding" in said) == (encoding != "utf-8")
    given = json.loads(
        quick_keepers("check", "thanksgiving.csv", "--header-rows", 2, "--json").stdout
    )
    assert given["kinds"] == kinds


def test_qualtrics(quick_keepers, tmp_path):
    (tmp_path / "survey.csv").write_text(qualtrics_survey())
    found, kept, _ = run(quick_keepers, "survey.csv")
    assert found["n_rows"] == len(kept) == 60
    expected = {"StartDate": "date", "ResponseId": "identifier"}
    assert found["kinds"] == {**expected, "Q1": "number", "Q2_1": "number", "Q3": "number"}


def test_houses(quick_keepers, tmp_path):
    (tmp_path / "ames.csv").write_text(ames_like())
    found, _, _ = run(quick_keepers, "ames.csv")
    assert found["kinds"]["Order"] == "identifier"
    assert found["kinds"]["MS Zoning"] == found["kinds"]["Pool QC"] == "category"
    assert "orientation" not in about(found)
    assert set(about(found)["gaps"]["columns"]) == {"Lot Frontage", "Pool QC"}


def test_counties_are_not_taken_for_genes(quick_keepers, tmp_path):
    (tmp_path / "acs.csv").write_text(acs_like())
    found, kept, _ = run(quick_keepers, "acs.csv")
    assert found["kinds"]["County"] == "identifier"
    assert "orientation" not in about(found)
    assert len(kept) == 250


def questions():
    """Answers from 1 to 5 that go together, and named people."""
    mood = RNG.normal(size=(1200, 1))
    answers = np.clip((3 + mood + RNG.normal(0, 0.7, (1200, 10))).round(), 1, 5)
    return pd.DataFrame(answers.astype(int)).add_prefix("q"), "person"


def years():
    """A number a year of many countries."""
    level = np.exp(RNG.normal(8, 1, (200, 1)))
    values = level * np.exp(RNG.normal(0, 0.1, (200, 12)))
    return pd.DataFrame(values, columns=[str(year) for year in range(2000, 2012)]), "country"


def patients():
    """Measurements on one scale."""
    return load_diabetes(as_frame=True).data, "patient"


@pytest.mark.parametrize("make", [questions, years, patients])
def test_ordinary_tables_with_named_rows_are_not_turned(quick_keepers, tmp_path, make):
    frame, name = make()
    frame.insert(0, name, [f"{name} {at}" for at in range(len(frame))])
    frame.to_csv("plain.csv", index=False)
    found, _, _ = run(quick_keepers, "plain.csv")
    assert "orientation" not in about(found)


def test_sensors(quick_keepers, tmp_path):
    (tmp_path / "train_FD001.txt").write_text(engines())
    found, _, _ = run(quick_keepers, "train_FD001.txt")
    assert (found["n_rows"], found["n_columns"]) == (150, 8)
    assert about(found)["constant columns"]["columns"] == ["x2"]
    (tmp_path / "skab.csv").write_text(pump())
    found, kept, _ = run(quick_keepers, "skab.csv")
    assert found["kinds"]["datetime"] == "date"
    assert set(kept) <= {"Accelerometer1RMS", "Current", "Pressure", "Temperature", "anomaly"}


def test_units_below_the_names(quick_keepers, tmp_path):
    first, *rows = pump().splitlines()
    text = "\n".join([first, ";g;A;bar;°C;", *rows])
    (tmp_path / "units.csv").write_text(text)
    found, _, said = run(quick_keepers, "units.csv")
    assert found["n_rows"] == 100
    assert found["kinds"]["Current"] == "number"
    assert "--header-rows 1" in said


@pytest.mark.parametrize("falling", [False, True])
def test_the_header_of_spectra_is_names(quick_keepers, tmp_path, falling):
    lines = [line.split(",") for line in spectra().splitlines()]
    (tmp_path / "nir.csv").write_text(text_of([row[::-1] for row in lines] if falling else lines))
    found, kept, said = run(quick_keepers, "nir.csv")
    assert found["n_rows"] == len(kept) == 40
    assert set(found["kinds"]) == set(lines[0])
    assert "--no-header" in said
    with_names = [
        ["sample", *lines[0]],
        *([f"leaf {at}", *row] for at, row in enumerate(lines[1:])),
    ]
    (tmp_path / "named.csv").write_text(text_of(with_names))
    found, _, _ = run(quick_keepers, "named.csv")
    assert found["n_rows"] == 40


TITLE = [
    ["Table 3. Answers by household", *[""] * 5],
    [""] * 6,
    ["Last updated", "2024", *[""] * 4],
]


@pytest.mark.parametrize("layout", ["xlsx", "csv", "bare csv", "semicolons"])
def test_a_title_above_the_header(quick_keepers, tmp_path, layout):
    names = ["household", "rooms", "people", "cars", "rent", "heating"]
    rows = [
        [f"H{at}", at % 4, at % 3 + 1, at % 2, 500 + 90.5 * (at % 4), at % 5] for at in range(40)
    ]
    title = [row if "bare" not in layout else [cell for cell in row if cell] for row in TITLE]
    name = "title.xlsx" if layout == "xlsx" else "title.csv"
    if layout == "xlsx":
        pd.DataFrame([*title, names, *rows]).to_excel(name, index=False, header=False)
    else:
        text = text_of([*title, names, *rows], ";" if layout == "semicolons" else ",")
        text = text.replace(".", ",") if layout == "semicolons" else text
        (tmp_path / name).write_text(text)
    found, _, said = run(quick_keepers, name)
    assert list(found["kinds"]) == names
    assert found["n_rows"] == 40
    assert "--skip-rows 0" in said
    assert f"{name}: " in said
    given = quick_keepers("check", name, "--skip-rows", 3, "--json")
    assert json.loads(given.stdout)["kinds"] == found["kinds"]
    assert "title" not in given.stderr


def test_years_in_a_header_below_a_title(quick_keepers, tmp_path):
    years = [str(year) for year in range(1990, 2010)]
    title = [["Data Source", "World Development Indicators"], [], ["Last Updated", "July 2024"], []]
    rows = [[f"Country {at}", *(at + RNG.normal(size=20)).round(3)] for at in range(30)]
    (tmp_path / "bank.csv").write_text(text_of([*title, ["Country", *years], *rows]))
    found, _, _ = run(quick_keepers, "bank.csv")
    assert list(found["kinds"]) == ["Country", *years]
    assert found["n_rows"] == 30


def test_a_file_that_was_cut_off_and_a_footnote_are_refused(quick_keepers, tmp_path):
    text = pump()
    (tmp_path / "cut.csv").write_text(text[: text.rindex(";") - 20])
    refused = quick_keepers("check", "cut.csv")
    assert refused.returncode == 1
    assert "line 101" in refused.stderr
    lines = engines().splitlines()
    lines[7] = lines[7].replace(" 100.0", "")  # with blanks nobody knows which cell is missing
    (tmp_path / "blanks.txt").write_text("\n".join(lines))
    refused = quick_keepers("check", "blanks.txt")
    assert refused.returncode == 1
    assert "line 8" in refused.stderr
    (tmp_path / "note.csv").write_text(text + "Source: a pump\n")
    refused = quick_keepers("check", "note.csv")
    assert refused.returncode == 1
    assert "line 102" in refused.stderr
