"""Where files are to be written is checked before anything is read or fitted."""

import pytest

OPTIONS = {
    "--out": "a.csv",
    "--report": "a.html",
    "--save": "a.json",
    "--scores": "s.csv",
}


@pytest.mark.posix
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("place", ["table.csv", "/proc/self"])
def test_a_target_that_cannot_be_written_is_noticed_before_the_fit(
    quick_keepers, table, monkeypatch, option, place
):
    def fitted(*_, **__):
        raise AssertionError("the table was read")

    monkeypatch.setattr("keepers.cli.prepared.open_table", fitted)
    monkeypatch.setattr("keepers.cli.prepared.scan_table", fitted)
    target = f"{place}/{OPTIONS[option]}"
    done = quick_keepers("select", table, "--id", "sample", "-k", 2, option, target)
    assert done.returncode in (1, 2)
    assert f"{target} cannot be written" in done.stderr
    assert "Unexpected error" not in done.stderr


@pytest.mark.parametrize("pair", [("--out", "--scores"), ("--report", "--save")])
@pytest.mark.parametrize("way", ["same name", "symbolic link", "hard link"])
@pytest.mark.posix
def test_no_output_replaces_another(quick_keepers, table, tmp_path, pair, way):
    first, second = tmp_path / "b.csv", tmp_path / "b.csv"
    if way != "same name":
        first.write_text("mine")
        second = tmp_path / "c.csv"
        second.symlink_to(first) if way == "symbolic link" else second.hardlink_to(first)
    done = quick_keepers("select", table, "-k", 2, pair[0], first, pair[1], second, "--force")
    assert done.returncode == 2
    assert f"{pair[1]} must not replace {pair[0]}" in done.stderr
    assert way == "same name" or first.read_text() == "mine"


@pytest.mark.posix
@pytest.mark.parametrize("option", ["--out", "--report", "--save", "--scores"])
def test_the_input_is_never_replaced(quick_keepers, table, tmp_path, option):
    before = table.read_bytes()
    (tmp_path / "link.csv").symlink_to(table)
    (tmp_path / "part").mkdir()
    part = tmp_path / "part" / "1.csv"
    part.write_bytes(before)
    for data, target in (
        (table, table),
        (table, "link.csv"),
        ("link.csv", table),
        ("part", part),
        ("part/*.csv", part),
    ):
        done = quick_keepers("select", data, "-k", 2, option, target, "--force")
        assert done.returncode == 2
        assert f"{option} must not replace the input" in done.stderr
    assert table.read_bytes() == part.read_bytes() == before


def test_apply_does_not_replace_its_input(quick_keepers, table):
    before = table.read_bytes()
    roles = ("--id", "sample", "--labels", "class")
    assert quick_keepers("select", table, "-k", 2, *roles, "--save", "r.json").returncode == 0
    done = quick_keepers("apply", "r.json", table, "--out", table, "--force")
    assert done.returncode == 2
    assert "--out must not replace the input" in done.stderr
    assert table.read_bytes() == before


@pytest.mark.parametrize("option", ["--out", "--report", "--save", "--scores"])
def test_the_standard_output_is_not_a_file(quick_keepers, table, tmp_path, option):
    done = quick_keepers("select", table, "-k", 2, option, "-")
    assert done.returncode == 2
    assert f"{option} writes a file; -" in done.stderr
    assert not (tmp_path / "-").exists()
