"""The command as a whole: its help, its version, its entry point."""

import subprocess
import sys

from typer.testing import CliRunner

from keepers import __version__
from keepers.app import app

WITHOUT_TYPER = """
import sys
sys.modules["typer"] = None
from keepers.app import main
main()
"""


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_help_and_completion_do_not_wait_for_scikit_learn():
    code = "import sys, keepers.app; print({'sklearn', 'scipy', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_every_command_is_in_the_help():
    shown = CliRunner().invoke(app, ["--help"]).stdout
    for command in ("select", "tune", "apply", "compare", "reproduce", "datasets"):
        assert f"  {command} " in shown


def test_the_version_is_printed():
    assert CliRunner().invoke(app, ["--version"]).stdout == f"keepers {__version__}\n"


def test_without_its_extra_the_command_says_what_to_install():
    done = run_python(WITHOUT_TYPER)
    assert done.returncode == 1
    assert done.stderr == (
        'keepers: the command needs typer. Install it with: pip install "keepers[cli]"\n'
    )
