"""The command as a whole: its help, its version, its entry points, the packages it may need."""

import os
import platform
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import sklearn
from typer.testing import CliRunner

from keepers import __version__
from keepers._packages import EXTRAS, optional, package_versions
from keepers.app import app, main
from keepers.exceptions import MissingDependencyError

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
    for command in ("check", "select", "apply", "certify", "compare"):
        assert f"  {command} " in shown


def test_the_version_is_printed():
    assert CliRunner().invoke(app, ["--version"]).stdout == f"keepers {__version__}\n"


def test_without_its_extra_the_command_says_what_to_install():
    done = run_python(WITHOUT_TYPER)
    assert done.returncode == 1
    assert done.stderr == (
        'keepers: the command needs typer. Install it with: pip install "keepers[cli]"\n'
    )


@pytest.mark.parametrize(
    ("words", "code", "shown"), [(["--version"], 0, __version__), (["select", "--no-such"], 2, "")]
)
def test_python_dash_m_keepers_is_the_command(words, code, shown):
    command = [sys.executable, "-m", "keepers", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert shown in done.stdout


def test_a_package_that_is_absent_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    expected = r'Parquet files need polars, .* pip install "keepers\[io\]"'
    with pytest.raises(MissingDependencyError, match=expected):
        optional("polars", "Parquet files")


@pytest.mark.parametrize(("package", "extra"), EXTRAS.items())
def test_every_extra_installs_its_package(package, extra):
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    required = project["optional-dependencies"][extra]
    distribution = package.replace("_", "-")  # as PyPI spells it
    assert any(re.split(r"[>\[.]", line)[0] == distribution for line in required)


def test_versions_are_those_of_the_packages_themselves(monkeypatch):
    versions = package_versions()
    assert versions["python"] == platform.python_version()
    assert versions["numpy"] == np.__version__
    assert versions["scikit-learn"] == sklearn.__version__
    monkeypatch.setattr("keepers._packages._VERSIONED", ("a-package-that-nobody-wrote",))
    assert package_versions()["a-package-that-nobody-wrote"] == "unknown"


def test_ctrl_c_during_imports_ends_without_a_traceback(tmp_path):
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-c", "from keepers.app import main; main()"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (130, "")


def test_ctrl_c_before_a_command_begins_ends_without_a_traceback(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("keepers.cli.console.make_streams_safe", interrupted)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130
    assert capsys.readouterr().err == "keepers: Interrupted.\n"


def test_ctrl_c_within_a_command_ends_in_a_line(monkeypatch):
    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr("keepers.cli.prepared.look_at", interrupted)
    done = CliRunner().invoke(app, ["check", "t.csv"])
    assert (done.exit_code, done.stderr) == (130, "keepers: Interrupted.\n")
