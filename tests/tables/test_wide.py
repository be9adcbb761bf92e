"""Text with thousands of columns: what pandas reads, wherever columns of text stand."""

import numpy as np
import pandas as pd
import pytest

from keepers.exceptions import DataError
from keepers.tables.opening import open_table, scan_table

WIDTH = 5_010


def write(path, X, texts, sep=",", **settings):
    """A frame with numbers in X and, at the places of ``texts``, words."""
    frame = pd.DataFrame(X).add_prefix("g")
    for at, words in sorted(texts.items()):
        frame.insert(at, f"t{at}", words)
    frame.to_csv(path, index=False, sep=sep, **settings)
    return frame


@pytest.mark.parametrize("places", [(), (0, WIDTH + 1), (0, 9, WIDTH + 2)])
@pytest.mark.parametrize("gaps", ["none", "empty", "NA"])
def test_columns_of_text_stand_anywhere(places, gaps, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4, WIDTH)).round(3)
    if gaps != "none":
        X[1, [0, 5, WIDTH - 1]] = np.nan
    texts = {at: ["a b", "c", None, "d"] for at in places}
    write(tmp_path / "wide.csv", X, texts, na_rep="NA" if gaps == "NA" else "")
    table = open_table(tmp_path / "wide.csv")
    np.testing.assert_array_equal(table.values, X)
    assert table.others == [f"t{at}" for at in places]
    scan = scan_table(tmp_path / "wide.csv")
    np.testing.assert_array_equal(np.vstack([block.values for block in scan.blocks()]), X)
    for at in places:
        assert table.frame[f"t{at}"].to_list() == ["a b", "c", None, "d"]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "end"])
def test_decimal_commas_truths_quotes_and_line_ends(line_end, last, tmp_path):
    names = ";".join(f"g{j}" for j in range(WIDTH))
    row = ";".join(["1,5", "TRUE", '"2,25"', *["-3"] * (WIDTH - 3)])
    text = line_end.join([names, row, row.replace("TRUE", "FALSE")])
    (tmp_path / "wide.csv").write_bytes((text + line_end * bool(last)).encode())
    table = open_table(tmp_path / "wide.csv")
    assert table.values[:, :4].tolist() == [[1.5, 1, 2.25, -3], [1.5, 0, 2.25, -3]]
    (tmp_path / "wide.csv").write_text("\n".join([names, row, row + ";4", row]))
    with pytest.raises(DataError, match="line 3 has 5011"):
        open_table(tmp_path / "wide.csv")
