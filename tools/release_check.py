"""Check what would be released: build it, look inside, install it elsewhere, use it.

``python tools/release_check.py`` builds the sdist and the wheel, lets ``twine check`` read them,
compares the files of the wheel with those of ``src/keepers``, and installs the wheel in an empty
environment. There, in an empty folder, it runs the Python part of the quick start and ``keepers
select``. Ends with 1 and says why if anything is wrong. ``--only-files`` stops before the install;
``--tag v1.2.3`` also compares a tag with the version and the changelog.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "keepers"
LARGEST_BYTES = 2_000_000
# Of the sdist: without these nobody can build from it or test it.
NEEDED_IN_SDIST = ("pyproject.toml", "README.md", "LICENSE", "src/keepers/__init__.py")
FENCED = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class ReleaseError(Exception):
    """Something that must not be released."""


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints; the clone is not on its path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"MPLBACKEND": "Agg", "PYTHONUTF8": "1", "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        words = " ".join(str(word) for word in command)
        raise ReleaseError(
            f"{words[:200]} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def expected_files() -> set[str]:
    """What the wheel must have, outside its metadata: the tracked files."""
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", SOURCE, cwd=ROOT)
    return {line.removeprefix("src/") for line in listed.splitlines() if (ROOT / line).is_file()}


def faults_of_wheel(path: Path, expected: set[str]) -> list[str]:
    """What is wrong with the files of a wheel."""
    with zipfile.ZipFile(path) as archive:
        names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
    inside = {name for name in names if ".dist-info/" not in name}
    faults = [f"{path.name} lacks {name}" for name in sorted(expected - inside)]
    faults += [f"{path.name} has {name}, which is not ours" for name in sorted(inside - expected)]
    faults += [
        f"{path.name} has {name} twice" for name in sorted(set(names)) if names.count(name) > 1
    ]
    if path.stat().st_size > LARGEST_BYTES:
        faults.append(f"{path.name} has {path.stat().st_size:,} bytes; {LARGEST_BYTES:,} at most.")
    return faults


def faults_of_sdist(path: Path) -> list[str]:
    """What is wrong with the files of an sdist."""
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    return [f"{path.name} lacks {name}" for name in NEEDED_IN_SDIST if name not in names]


def faults_of_tag(tag: str, version: str, changelog: str, fragments: list[str]) -> list[str]:
    """Why a commit must not be released under a tag."""
    faults = []
    if tag != f"v{version}":
        faults.append(f"The tag is {tag}, the version {version}: it must be v{version}.")
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.MULTILINE):
        faults.append(f"CHANGELOG.md has no heading '## {version} (YYYY-MM-DD)'.")
    faults += [f"changelog.d/{name} is not in the changelog: make changelog" for name in fragments]
    return faults


def check_tag(tag: str) -> None:
    """Raise if this commit must not be released under ``tag``."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    faults = faults_of_tag(
        tag,
        settings["project"]["version"],
        (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
        sorted(path.name for path in (ROOT / "changelog.d").glob("+*.md")),
    )
    if faults:
        raise ReleaseError("\n".join(faults))


def build(folder: Path) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from it, as an installer from PyPI would."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel, cwd=folder)
    return sdist, wheel


def install(wheel: Path, folder: Path) -> Path:
    """Make an empty environment with the wheel; gives its folder of commands."""
    run(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    commands = folder / ("Scripts" if os.name == "nt" else "bin")
    quiet = ("--quiet", "--disable-pip-version-check")
    run(commands / "python", "-m", "pip", "install", *quiet, f"{wheel}[all]", cwd=folder.parent)
    return commands


def quick_start() -> str:
    """The Python of docs/quick-start.md, which also writes the files of its commands."""
    page = (ROOT / "docs" / "quick-start.md").read_text(encoding="utf-8")
    return "\n".join(FENCED.findall(page))


def try_out(commands: Path, folder: Path) -> None:
    """Use the installed package in a folder that knows nothing of the clone."""
    python = commands / "python"
    home = Path(run(python, "-c", "import keepers; print(keepers.__file__)", cwd=folder).strip())
    if ROOT.resolve() in home.resolve().parents:
        raise ReleaseError(f"The environment imports keepers from the clone: {home}")
    (folder / "quick_start.py").write_text(quick_start(), encoding="utf-8")
    run(python, "quick_start.py", cwd=folder)
    roles = ("--id", "patient", "--labels", "tumour", "--missing", "model")
    files = ("--out", "kept.csv", "--report", "report.html")
    run(commands / "keepers", "select", "genes.csv", "-k", "20", *roles, *files, cwd=folder)
    header = (folder / "kept.csv").read_text(encoding="utf-8").partition("\n")[0].split(",")
    if len(header) != 22:  # the identifier, the classes, and twenty features
        raise ReleaseError(f"keepers select -k 20 wrote {len(header)} columns: {header}")
    if (folder / "report.html").stat().st_size < 10_000:
        raise ReleaseError("The report of keepers select is empty.")
    run(python, "-m", "keepers", "compare", "--help", cwd=folder)


def check(temporary: Path, options: argparse.Namespace) -> None:
    """Do what the options ask for, in a temporary folder; raises at the first fault."""
    if options.tag is not None:
        check_tag(options.tag)
    built = temporary / "dist"
    built.mkdir()
    sdist, wheel = build(built)
    print(f"Built {sdist.name} and {wheel.name}; twine has no complaint.")
    expected = expected_files()
    faults = faults_of_wheel(wheel, expected) + faults_of_sdist(sdist)
    if faults:
        raise ReleaseError("\n".join(faults))
    size = wheel.stat().st_size
    print(f"The wheel has the {len(expected)} files it must have, in {size:,} bytes.")
    if not options.only_files:
        commands = install(wheel, temporary / "environment")
        (temporary / "work").mkdir()
        try_out(commands, temporary / "work")
        print("Installed elsewhere, it runs the quick start and keepers select.")
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
        for path in (sdist, wheel):
            shutil.copy(path, options.keep)


def main(arguments: list[str] | None = None) -> int:
    """Check the release; 0 if nothing is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only-files", action="store_true", help="Build and look inside only.")
    parser.add_argument("--tag", help="The tag of the release, as v1.2.3.")
    parser.add_argument("--keep", type=Path, help="Copy the sdist and the wheel to this folder.")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        try:
            check(Path(name).resolve(), options)
        except ReleaseError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
