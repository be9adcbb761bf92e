"""The project's habits: workflows that can be trusted, fragments, bounds, and what is released."""

import ast
import json
import re
import runpy
import tomllib
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = SETTINGS["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
FRAGMENT = re.compile(r"\+[a-z0-9][a-z0-9.-]*\.(added|changed|fixed|removed)\.md")
RELEASE = SimpleNamespace(**runpy.run_path(str(ROOT / "tools" / "release_check.py")))
ASV = SimpleNamespace(**runpy.run_path(str(ROOT / "benchmarks" / "asv" / "compare.py")))
each_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)


def jobs_of(path: Path) -> dict[str, dict]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]


def test_the_workflows_are_there():
    assert {path.stem for path in WORKFLOWS} >= {
        "tests",
        "docs",
        "package",
        "release",
        "benchmarks",
    }


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
def test_every_job_ends_by_itself(path):
    for name, job in jobs_of(path).items():
        assert job["timeout-minutes"] <= 90, name


@each_workflow
def test_a_name_that_others_choose_is_never_part_of_a_command(path):
    for name, job in jobs_of(path).items():
        for step in job["steps"]:
            inserted = set(re.findall(r"\$\{\{ *([\w.-]+)", step.get("run", "")))
            assert inserted <= {"runner.temp"}, name


def test_the_job_that_publishes_runs_no_command_of_ours():
    publish = jobs_of(ROOT / ".github" / "workflows" / "release.yml")["publish"]
    assert all("uses" in step for step in publish["steps"])


def test_the_tests_run_on_every_python_of_the_classifiers_and_three_systems():
    matrix = jobs_of(ROOT / ".github" / "workflows" / "tests.yml")["test"]["strategy"]["matrix"]
    named = [re.fullmatch(r".* :: (3\.\d+)", line) for line in PROJECT["classifiers"]]
    assert matrix["python"] == [found[1] for found in named if found]
    assert {name.split("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}


def test_the_oldest_versions_are_the_lower_bounds():
    extras = PROJECT["optional-dependencies"]
    tested_extras = ("cli", "io", "dask", "excel", "zarr", "plot")
    lines = [*PROJECT["dependencies"], *(line for name in tested_extras for line in extras[name])]
    bounds = dict(re.fullmatch(r"([\w-]+)(?:\[.*\])?>=([\d.]+)", line).groups() for line in lines)
    text = (ROOT / "tools" / "oldest-versions.txt").read_text(encoding="utf-8")
    tested = dict(re.findall(r"^([\w-]+)==([\d.]+)$", text, re.MULTILINE))
    for name, bound in bounds.items():
        assert f"{tested[name]}.".startswith(f"{bound}."), name


def test_fragments_of_the_changelog_have_names_that_towncrier_reads():
    kinds = {kind["directory"] for kind in SETTINGS["tool"]["towncrier"]["type"]}
    assert kinds == {"added", "changed", "fixed", "removed"}
    for path in (ROOT / "changelog.d").iterdir():
        if path.name not in ("README.md", "template.md"):
            assert FRAGMENT.fullmatch(path.name), path.name
            assert path.read_text(encoding="utf-8").strip(), path.name


def test_fragments_go_under_a_heading_that_the_changelog_has():
    start = SETTINGS["tool"]["towncrier"]["start_string"]
    assert start == f"## {PROJECT['version']} (unreleased)\n"
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    dated = re.search(rf"^## {PROJECT['version']} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.MULTILINE)
    assert start in changelog or dated


def test_hooks_of_pre_commit_run_what_the_project_has_installed():
    settings = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [repo["repo"] for repo in settings["repos"]] == ["local"]
    hooks = settings["repos"][0]["hooks"]
    assert {hook["id"] for hook in hooks} >= {"ruff", "mypy", "import-linter", "codespell"}
    assert all(hook["language"] == "system" for hook in hooks)


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


def test_calls_that_run_data_are_found():
    source = "pickle.loads(a); np.load(b); np.load(c, allow_pickle=False); pickle.dumps(d); eval(e)"
    assert calls_that_run_data(source) == ["pickle.loads(a)", "np.load(b)", "eval(e)"]


def test_nothing_in_the_package_runs_what_it_reads():
    for path in sorted((ROOT / "src").rglob("*.py")):
        assert calls_that_run_data(path.read_text(encoding="utf-8")) == [], path.name


def test_the_tests_that_the_security_page_names_exist():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:tests|tools)/[\w/]+\.py)`", text)
    assert len(named) > 10
    for name in named:
        assert (ROOT / name).is_file(), name


@pytest.fixture
def wheel(tmp_path):
    """Makes an archive with the files named."""

    def make(*names, size=10):
        path = tmp_path / "keepers-1.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, b"0" * size)
        return path

    return make


def test_a_whole_wheel_has_no_fault(wheel):
    made = wheel("keepers/__init__.py", "keepers/page.html", "keepers-1.0.dist-info/RECORD")
    assert RELEASE.faults_of_wheel(made, {"keepers/__init__.py", "keepers/page.html"}) == []


def test_a_wheel_without_a_template_or_with_a_stray_file_is_found(wheel):
    made = wheel("keepers/__init__.py", "tests/test_app.py")
    missing, stray = RELEASE.faults_of_wheel(made, {"keepers/__init__.py", "keepers/page.html"})
    assert missing.endswith("lacks keepers/page.html")
    assert "has tests/test_app.py" in stray


def test_a_wheel_that_is_too_large_is_found(wheel):
    made = wheel("keepers/__init__.py", size=2_100_000)
    (fault,) = RELEASE.faults_of_wheel(made, {"keepers/__init__.py"})
    assert "2,000,000 at most" in fault


def test_what_the_wheel_must_have_includes_templates_data_and_studies():
    expected = RELEASE.expected_files()
    assert {
        "keepers/__main__.py",
        "keepers/py.typed",
        "keepers/data/files/srbct.npz",
        "keepers/reporting/templates/selection.html.jinja",
        "keepers/studies/study_files/paper.toml",
    } <= expected


def test_a_tag_is_released_only_if_version_and_changelog_agree():
    dated = "# Changelog\n\n## 1.2.3 (2026-01-31)\n\n- New.\n"
    assert RELEASE.faults_of_tag("v1.2.3", "1.2.3", dated, []) == []
    (other,) = RELEASE.faults_of_tag("v1.2.4", "1.2.3", dated, [])
    assert "must be v1.2.3" in other
    (undated,) = RELEASE.faults_of_tag("v1.2.3", "1.2.3", "## 1.2.3 (unreleased)\n", [])
    assert "no heading" in undated
    (left,) = RELEASE.faults_of_tag("v1.2.3", "1.2.3", dated, ["+new.added.md"])
    assert "make changelog" in left


def test_the_python_of_the_quick_start_writes_the_file_that_the_command_reads():
    source = RELEASE.quick_start()
    compile(source, "quick-start.md", "exec")
    assert 'to_csv("genes.csv"' in source


def test_the_baseline_has_the_machine_and_a_reference():
    kept = json.loads(ASV.BASELINE.read_text(encoding="utf-8"))
    assert {"cores", "platform", "python", "numpy", "scipy"} <= set(kept["machine"])
    assert sum("Reference" in name for name in kept["seconds"]) == 1
    assert len(kept["seconds"]) >= 7
    assert all(value > 0 for value in kept["seconds"].values())


def test_a_slower_benchmark_is_reported_and_a_slower_machine_is_not():
    before = {"Reference": 1.0, "fit": 2.0, "read": 3.0}
    twice = {name: 2 * value for name, value in before.items()}
    assert ASV.compare(before, twice)[1] == []
    assert ASV.compare(before, {**before, "fit": 4.0})[1] == ["fit takes 2.00 times as long"]
    assert ASV.compare(before, {"Reference": 1.0, "fit": 2.0})[1] == ["read was not measured"]


def test_results_of_asv_are_read_by_name_and_parameter():
    results = {
        "result_columns": ["result", "params"],
        "results": {"a.time": [[0.5], []], "b.time": [[1.0, None], [["'wide'", "'tall'"]]]},
    }
    assert ASV.seconds_in(results) == {"a.time": 0.5, "b.time('wide')": 1.0}
