"""Lists of features as other people and programs write them."""

import io
import sys

import numpy as np
import pytest

from keepers import SPCAFS, datasets, describe_selection
from keepers.cli.feature_list import MOST_BYTES, read_feature_list
from keepers.exceptions import DataError
from keepers.recipe import Recipe, checksum


def written(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("list.txt", "a\nb c\nd,e\n"),
        ("list", "  a \r\n\r\n# from the paper\r\nb c\r\nd,e"),
        ("list.txt", "\ufeffa\nb c\nd,e\n"),
        ("list.csv", 'feature\na\n"b c"\n"d,e"\n'),
        ("list.csv", 'a\nb c\n"d,e"\n'),
        ("list.tsv", "Gene\tp\na\t1\nb c\t2\nd,e\t3\n"),
        (
            "scores.csv",
            "feature,rank,score,kept,reason\na,1,2.5,yes,kept\nb c,2,2,yes,kept\n"
            '"d,e",3,1,yes,kept\nf,4,0,no,constant\n',
        ),
        (
            "hvg.csv",
            ',means,highly_variable\na,1,True\nx,2,False\nb c,3,True\n"d,e",4,True\n',
        ),
    ],
)
def test_names_are_read_from_text_tables_of_features_and_lists_of_scanpy(tmp_path, name, content):
    assert read_feature_list(written(tmp_path, name, content)) == ["a", "b c", "d,e"]


def test_the_standard_input_is_read(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\ntwo\n")))
    assert read_feature_list("-") == ["one", "two"]


def test_a_recipe_gives_its_kept_features(tmp_path):
    X, names, _ = datasets.load("srbct")
    selection = describe_selection(SPCAFS(5, n_components=3).fit(X), X, feature_names=names)
    Recipe.of(selection, checksum(X, names)).save(tmp_path / "recipe.json")
    expected = [str(names[column]) for column in np.argsort(selection.selector.ranking_)[:5]]
    assert read_feature_list(str(tmp_path / "recipe.json")) == expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.txt", "", "names none"),
        ("comments.txt", "# nothing\n\n", "names none"),
        ("heading.csv", "feature,kept\nx,no\n", "names none"),
        ("latin.txt", "caf\xe9".encode("latin-1"), "not, at byte 3"),
        ("zeros.csv", b'"' + b"a" * (2**18), "can be told apart"),
        ("recipe.json", "{", "recipe"),
        ("long.txt", b"a" * (MOST_BYTES + 1), "is longer"),
    ],
)
def test_what_is_no_list_is_refused_in_a_sentence(tmp_path, name, content, message):
    with pytest.raises(DataError, match=message):
        read_feature_list(written(tmp_path, name, content))
