"""What the command prints, and where: terminals, closed streams, narrow encodings, odd names."""

import os
import shlex
import subprocess

import numpy as np
import pytest
import typer

from cli.conftest import COMMAND, QUICK
from keepers.cli import console

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")

HOSTILE = "\x1b]0;title\x07", "\x1b[2Jwiped", "\x9b31m", "\u202ereversed", "[red]x[/red]", ":smile:"
QUICK_SELECT = ("select", "digits", "-k", "3", "--method", "variance")


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


@pytest.mark.slow
def test_names_of_columns_cannot_steer_a_terminal_and_are_no_markup(tmp_path, write_table):
    columns = [*HOSTILE, "constant\x1b]0;again\x07"]
    shown = run_on_a_terminal(tmp_path, "select", write_table("t.csv", columns), "-k", 6)
    assert_harmless(shown)
    for name in ("\\x1b[2Jwiped", "\\x9b31m", "\\u202ereversed", "[red]x[/red]", ":smile:"):
        assert name in shown
    assert "constant\\x1b]0;again\\x07" in shown  # in the note about constant columns


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["select", "x", "--\x1b[2J\x07"], 2),
        (["\x1b[2J\u202e"], 2),
        (["select", "x", "-k", "\x1b[2J"], 2),
        (["select", "./\x1b[2J/\u202e.csv", "-k", 1, "--debug"], 1),
        (["select", "x" * 100_000, "-k", 1], 1),
        (["select", "srbct", "-k", 1, "--never", "x" * 100_000], 2),
    ],
)
def test_what_is_typed_cannot_steer_a_terminal_or_fill_it(quick_keepers, arguments, code):
    done = quick_keepers(*arguments)
    assert done.returncode == code
    assert ("Traceback" in done.stderr) == ("--debug" in arguments)
    assert_harmless(done.stderr)
    assert len(done.stderr) < 3000 or "--debug" in arguments


@pytest.mark.slow
def test_a_reader_that_leaves_ends_the_command_quietly(tmp_path):
    """`keepers select ... | true`: as a tool that SIGPIPE ends, 128 + 13."""
    reading, writing = os.pipe()
    os.close(reading)
    done = run_bytes(tmp_path, *QUICK_SELECT, "-q", stdout=writing)
    os.close(writing)
    assert done.returncode == 141
    assert done.stderr == b""


@pytest.mark.slow
@pytest.mark.parametrize(("closed", "option"), [(">&-", ""), (">&- 2>&- <&-", "--json")])
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
    with open("/dev/full", "wb") as full:
        done = run_bytes(tmp_path, "--help", stdout=full)
    assert done.returncode == 1
    assert done.stderr == b"keepers: No space left on device\n"


def test_what_nobody_foresaw_is_called_unexpected(capfd):
    app = typer.Typer(cls=console.SafeCommands, rich_markup_mode=None)

    @app.command()
    def other():
        raise ZeroDivisionError("a\x1b[2J")

    @app.callback()
    def more():
        pass

    with pytest.raises(SystemExit) as ended:
        app(["other"])
    assert ended.value.code == 1
    said = capfd.readouterr().err
    assert said.startswith("keepers: Unexpected error (ZeroDivisionError: a\\x1b[2J). Run")
    assert "--debug" in said
