"""The project's habits: workflows that can be trusted, fragments, bounds, no code in data."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = SETTINGS["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
FRAGMENT = re.compile(r"\+[a-z0-9][a-z0-9.-]*\.(added|changed|fixed|removed)\.md")
each_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)


def jobs_of(path: Path) -> dict[str, dict]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]


@each_workflow
def test_actions_are_pinned_by_commit_with_their_version(path):
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if "uses:" in line]
    assert lines
    for line in lines:
        assert PINNED.search(line), line


@each_workflow
def test_a_workflow_may_read_and_nothing_else(path):
    whole = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert whole["permissions"] == {"contents": "read"}
    given = {
        name: job["permissions"] for name, job in whole["jobs"].items() if "permissions" in job
    }
    allowed = {"publish": {"id-token": "write"}} if path.stem == "release" else {}
    assert given == allowed


@each_workflow
def test_no_workflow_knows_a_secret_or_keeps_a_password(path):
    text = path.read_text(encoding="utf-8")
    assert "secrets." not in text
    assert "pull_request_target" not in text
    assert text.count("persist-credentials: false") == text.count("uses: actions/checkout@")


@each_workflow
def test_a_name_that_others_choose_is_never_part_of_a_command(path):
    for name, job in jobs_of(path).items():
        for step in job["steps"]:
            inserted = set(re.findall(r"\$\{\{ *([\w.-]+)", step.get("run", "")))
            assert inserted <= {"runner.temp"}, name


def test_the_oldest_versions_are_the_lower_bounds():
    extras = PROJECT["optional-dependencies"]
    tested_extras = ("cli", "io", "dask", "excel", "h5ad", "plot")
    lines = [*PROJECT["dependencies"], *(line for name in tested_extras for line in extras[name])]
    lines = [line.partition(";")[0] for line in lines if not line.startswith("keepers[")]
    bounds = dict(re.fullmatch(r"([\w.-]+)(?:\[.*\])?>=([\d.]+)", line).groups() for line in lines)
    text = (ROOT / "tools" / "oldest-versions.txt").read_text(encoding="utf-8")
    tested = dict(re.findall(r"^([\w.-]+)==([\d.]+)$", text, re.MULTILINE))
    for name, bound in bounds.items():
        assert f"{tested[name]}.".startswith(f"{bound}."), name


def test_fragments_of_the_changelog_have_names_that_towncrier_reads():
    kinds = {kind["directory"] for kind in SETTINGS["tool"]["towncrier"]["type"]}
    assert kinds == {"added", "changed", "fixed", "removed"}
    for path in (ROOT / "changelog.d").iterdir():
        if path.name not in ("README.md", "template.md"):
            assert FRAGMENT.fullmatch(path.name), path.name
            assert path.read_text(encoding="utf-8").strip(), path.name


def calls_that_run_data(source: str) -> list[str]:
    """Calls that run what they read: unpickling, evaluation, NumPy's loader unless told not to."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            safe = any(
                word.arg == "allow_pickle" and ast.unparse(word.value) == "False"
                for word in node.keywords
            )
            runs = re.fullmatch(r"eval|exec|.*pickle\.(load|loads|Unpickler)|joblib\.load", name)
            if runs or (re.fullmatch(r"np\.load|.*\.read_array", name) and not safe):
                found.append(ast.unparse(node))
    return found


def test_nothing_in_the_package_runs_what_it_reads():
    for path in sorted((ROOT / "src").rglob("*.py")):
        assert calls_that_run_data(path.read_text(encoding="utf-8")) == [], path.name
