"""What the command prints, and where: terminals, closed streams, narrow encodings, odd names."""

import json
import os
import shlex
import subprocess

import numpy as np
import pytest

from cli.conftest import COMMAND, QUICK
from keepers.cli import console
from keepers.cli.console import as_unicode, note, printable, shell_command
from keepers.exceptions import DataError

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")

HOSTILE = "\x1b]0;title\x07", "\x1b[2Jwiped", "\x9b31m", "\u202ereversed", "[red]x[/red]", ":smile:"
HARMLESS = (
    "\\x1b]0;title\\x07",
    "\\x1b[2Jwiped",
    "\\x9b31m",
    "\\u202ereversed",
    "[red]x[/red]",
    ":smile:",
)
QUICK_SELECT = ("select", "digits", "-k", "3", "--method", "variance")
NO_UTF8 = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.fixture
def write_table(tmp_path):
    """Write 30 samples of these columns, the last of them constant, to a file of this name."""

    def write(file_name, columns):
        values = np.random.default_rng(0).standard_normal((30, len(columns)))
        values[:, -1] = 1.0
        lines = [",".join(f'"{name}"' for name in columns)]
        lines += [",".join(map(repr, row)) for row in values.tolist()]
        (tmp_path / file_name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return file_name

    return write


def run_bytes(folder, *arguments, environment=None, **streams):
    """Run the command; its outputs as bytes."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.run(
        [os.fsencode(COMMAND), *map(os.fsencode, map(str, arguments))],
        cwd=folder,
        timeout=120,
        check=False,
        env={**os.environ, **QUICK, **(environment or {})},
        **streams,
    )


def run_on_a_terminal(folder, *arguments):
    """Run the command on a pseudo-terminal of its own; all that it shows."""
    terminal, other_end = pty.openpty()
    with subprocess.Popen(
        [str(COMMAND), *map(str, arguments)],
        cwd=folder,
        stdout=other_end,
        stderr=other_end,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **QUICK, "TERM": "xterm", "COLUMNS": "160"},
    ) as process:
        os.close(other_end)
        shown = b""
        while True:
            try:
                part = os.read(terminal, 65536)
            except OSError:  # Linux says so at the end
                break
            if not part:
                break
            shown += part
    os.close(terminal)
    assert process.returncode == 0, shown
    return shown.decode("utf-8")


def assert_harmless(text):
    assert not any(character in text for character in "\x07\x9b\u202e")
    assert "\x1b]" not in text
    assert "\x1b[2J" not in text


def test_names_of_columns_cannot_steer_a_terminal_and_are_no_markup(tmp_path, write_table):
    columns = [*HOSTILE, "constant\x1b]0;again\x07"]
    shown = run_on_a_terminal(tmp_path, "select", write_table("t.csv", columns), "-k", 6)
    assert_harmless(shown)
    for name in HARMLESS:
        assert name in shown
    assert "constant\\x1b]0;again\\x07" in shown  # in the note about columns set aside


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["\x1b[2J.csv", "a\nb.csv", "\u202ecsv.csv", "[red]x.csv", "\x1b]0;t\x07.csv"]
)
def test_names_of_files_cannot_steer_a_terminal_and_are_no_markup(tmp_path, write_table, name):
    file_name = write_table(name, ["a", "b", "c"])
    shown = run_on_a_terminal(
        tmp_path, "select", f"./{file_name}", "-k", 1, "--out", f"{name}.out.csv"
    )
    assert_harmless(shown)
    assert f"out: {printable(name)}.out.csv" in shown
    missing = run_bytes(tmp_path, "select", f"./no{name}", "-k", 1)
    assert_harmless(missing.stderr.decode())
    assert missing.stderr.count(b"\n") == 1


def test_wrong_options_cannot_steer_a_terminal(tmp_path):
    for arguments in (
        ["select", "x", "--\x1b[2J\x07"],
        ["\x1b[2J\u202e"],
        ["select", "x", "-k", "\x1b[2J"],
    ):
        done = run_bytes(tmp_path, *arguments)
        assert done.returncode == 2
        assert_harmless(done.stderr.decode())


def test_the_traceback_of_debug_cannot_steer_a_terminal(tmp_path):
    done = run_bytes(tmp_path, "select", "./\x1b[2J/\u202e.csv", "-k", 1, "--debug")
    assert done.returncode == 1
    assert b"Traceback" in done.stderr
    assert_harmless(done.stderr.decode())


def test_json_stays_json_whatever_the_names_are(tmp_path, write_table):
    columns = [*HOSTILE, "constant"]
    done = run_bytes(
        tmp_path, "select", write_table("\x1b[2J.csv", columns), "-k", 6, "--json", "-q"
    )
    assert done.stdout.isascii()
    result = json.loads(done.stdout)
    assert {feature["name"] for feature in result["features"]} == set(HOSTILE)
    assert result["data"] == "\x1b[2J"


def test_an_error_is_cut_before_it_is_printed(tmp_path):
    done = run_bytes(tmp_path, "select", "x" * 100_000, "-k", 1)
    assert done.returncode == 1
    assert len(done.stderr) < 3000
    done = run_bytes(tmp_path, "select", "srbct", "-k", 1, "--never", "x" * 100_000)
    assert len(done.stderr) < 3000


def test_the_last_line_of_defence_cuts_any_message(capfd):
    note("x" * 10**6)
    assert len(capfd.readouterr().err) < 3000

    @console.errors_in_one_sentence
    def command():
        raise DataError(*["y" * 10**6] * 100)

    with pytest.raises(SystemExit):
        command()
    assert len(capfd.readouterr().err) < 60_000


def test_a_reader_that_leaves_ends_the_command_quietly(tmp_path):
    """`keepers select ... | true`: as a tool that SIGPIPE ends, 128 + 13."""
    reading, writing = os.pipe()
    os.close(reading)
    done = run_bytes(
        tmp_path, "select", "digits", "-k", 3, "--method", "variance", "-q", stdout=writing
    )
    os.close(writing)
    assert done.returncode == 141
    assert done.stderr == b""


def test_a_reader_of_both_streams_that_leaves_ends_the_command_quietly(tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    streams = {"stdout": writing, "stderr": writing}
    done = run_bytes(tmp_path, *QUICK_SELECT, **streams)
    os.close(writing)
    assert done.returncode == 141


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", ">&- 2>&- <&-"])
@pytest.mark.parametrize("option", ["", "--json"])
def test_a_closed_output_does_not_keep_files_from_being_written(tmp_path, closed, option):
    line = (
        f"{shlex.quote(str(COMMAND))} select digits -k 3 --method variance {option} --out kept.csv"
    )
    done = subprocess.run(
        ["sh", "-c", f"{line} {closed}"],
        cwd=tmp_path,
        capture_output=True,
        timeout=120,
        check=False,
        env={**os.environ, **QUICK},
    )
    assert done.returncode == 0
    assert b"rror" not in done.stderr
    assert len((tmp_path / "kept.csv").read_text().splitlines()) == 1798  # digits has 1797 samples


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device here")
def test_a_full_disk_under_the_output_is_said_in_a_sentence(tmp_path):
    for arguments in ([*QUICK_SELECT, "-q"], ["--help"]):
        with open("/dev/full", "wb") as full:
            done = run_bytes(tmp_path, *arguments, stdout=full)
        assert done.returncode == 1
        assert done.stderr == b"keepers: No space left on device\n"


@pytest.mark.parametrize(
    "environment", [{"PYTHONIOENCODING": "ascii"}, NO_UTF8], ids=["io", "locale"]
)
def test_characters_that_the_terminal_lacks_are_escaped(tmp_path, write_table, environment):
    write_table("Größe.csv", ["naïve", "基因", "constant ü"])
    arguments = ("select", "Größe.csv", "-k", 2, "--report", "page.html", "--save", "recipe.json")
    done = run_bytes(tmp_path, *arguments, environment=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert done.stderr.isascii()
    assert b"na\\xefve" in done.stdout
    assert b"\\u57fa\\u56e0" in done.stdout
    assert b"constant \\xfc" in done.stderr


def test_a_file_name_that_is_no_utf8_is_escaped_wherever_it_is_printed_or_stored(
    tmp_path, write_table
):
    try:
        write_table("n\udcff.csv", ["a", "b", "c"])
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    arguments = ("--report", "page.html", "--save", "recipe.json", "--out", "o\udcff.csv", "--json")
    done = run_bytes(tmp_path, "select", "n\udcff.csv", "-k", 1, *arguments)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["data"] == "n\\xff"
    assert result["written"]["out"] == "o\\xff.csv"
    assert json.loads((tmp_path / "recipe.json").read_text())["source"] == "n\\xff"
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "$&#39;n\\xff.csv&#39;" in page  # the command that repeats it
    assert b"a" in (tmp_path / "o\udcff.csv").read_bytes()
    missing = run_bytes(tmp_path, "select", "./no\udcff.csv", "-k", 1)
    assert missing.returncode == 1
    assert b"Unexpected" not in missing.stderr


@pytest.mark.posix
def test_a_command_for_the_shell_survives_any_word(tmp_path):
    words = ["plain", "two words", "it's", "a\nb", "\x1b[2J\\x", "n\udcff", "基因", "", "'\x07'"]
    line = shell_command(words)
    assert printable(line) == line
    done = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True, cwd=tmp_path
    )
    assert [os.fsdecode(word) for word in done.stdout.split(b"\0")[:-1]] == words


def test_bytes_that_are_no_text_are_shown_as_escapes():
    assert as_unicode("naïve 基因") == "naïve 基因"
    assert as_unicode("n\udcff") == "n\\xff"
    assert as_unicode("half \ud800") == "half \\ud800"


@pytest.mark.posix
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["select", "loop.csv", "-k", "1"], 1),
        (["select", "loop.csv", "-k", "1", "--memory", "1G"], 1),
        (["tune", "loop.csv"], 1),
        (["select", "t.csv", "-k", "1", "--out", "loop.csv"], 2),
        (["select", "t.csv", "-k", "1", "--out", "loop.csv", "--force"], 2),
        (["select", "t.csv", "-k", "1", "--save", "loop.csv"], 2),
        (["select", "t.csv", "-k", "1", "--report", "loop.csv"], 2),
        (["select", "t.csv", "-k", "1", "--checkpoint", "loop.csv"], 2),
        (["apply", "loop.csv", "t.csv", "--out", "kept.csv"], 1),
    ],
)
def test_a_link_that_leads_back_to_itself_is_named(
    quick_keepers, tmp_path, write_table, arguments, code
):
    write_table("t.csv", ["a", "b", "c"])
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    done = quick_keepers(*arguments)
    assert done.returncode == code, done.stderr
    assert "symbolic link" in done.stderr
    assert "loop.csv" in done.stderr
    assert "Unexpected" not in done.stderr
    assert (tmp_path / "loop.csv").is_symlink()


def test_what_nobody_foresaw_is_called_unexpected(capfd):
    @console.errors_in_one_sentence
    def command():
        raise ZeroDivisionError("a\x1b[2J")

    with pytest.raises(SystemExit) as ended:
        command()
    assert ended.value.code == 1
    said = capfd.readouterr().err
    assert said.startswith("keepers: Unexpected error (ZeroDivisionError: a\\x1b[2J). Run")
    assert "--debug" in said


def test_what_is_proved_is_a_column_of_the_terminal_if_anything_is(tmp_path):
    """Of independent columns the k with the largest variances are the only best set."""
    X = np.random.default_rng(0).standard_normal((40, 6))
    X = np.linalg.qr(X - X.mean(axis=0))[0] * [6.0, 5.0, 4.0, 1.0, 0.9, 0.8]
    lines = [",".join(f"g{j}" for j in range(6)), *(",".join(map(repr, row)) for row in X.tolist())]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    options = ("select", "t.csv", "-k", 3, "--method", "fspca", "--set", "n_components=3")
    shown = run_on_a_terminal(tmp_path, *options)
    heading = next(line for line in shown.splitlines() if "nearest kept" in line)
    assert "proved" in heading
    assert shown.count("in every best set") == 4  # three rows, and the sentence
    assert "proved" not in run_on_a_terminal(tmp_path, *options, "--no-certify")
    lapscore = ("select", "t.csv", "-k", 3, "--method", "lapscore")
    assert "proved" not in run_on_a_terminal(tmp_path, *lapscore)
