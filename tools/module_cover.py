"""Modules of keepers without a test file of their own, and the test that covers each.

python tools/module_cover.py               lines for tests/covered_elsewhere.toml
python tools/module_cover.py --missing     only those that the list does not have yet

A module ``linalg/graph.py`` has its own test at ``tests/linalg/test_graph.py``. For the others
the tool proposes the test file that imports the most names from the module; where no test imports
it, the test of a module that does. Read a proposal before it is kept.
"""

import argparse
import ast
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "keepers"
TESTS = ROOT / "tests"
LIST = TESTS / "covered_elsewhere.toml"


def modules() -> list[str]:
    """Every module, by its path in the package; an ``__init__.py`` only if it defines something."""
    found = sorted(SOURCE.rglob("*.py"))
    return [
        path.relative_to(SOURCE).as_posix()
        for path in found
        if path.name != "__init__.py" or _defines_something(path)
    ]


def own_test(module: str) -> str:
    """Where the test of a module is expected, by its path in ``tests``."""
    path = Path(module)
    return (path.parent / f"test_{path.stem.strip('_')}.py").as_posix()


def without_own_test() -> list[str]:
    """The modules whose expected test file does not exist."""
    return [module for module in modules() if not (TESTS / own_test(module)).is_file()]


def covered_elsewhere() -> dict[str, dict[str, str]]:
    """The list: module -> its test, and why it is there."""
    return tomllib.loads(LIST.read_text(encoding="utf-8")) if LIST.exists() else {}


def covering_test(module: str) -> tuple[str, str] | None:
    """The test that imports the module most directly, and a word about it."""
    direct = _importing_test(module, module)
    if direct is not None:
        return direct, "imported there"
    waiting, seen = [module], {module}
    while waiting:
        used = waiting.pop(0)
        users = [user for user in _imports_of_modules() if _imports_of_modules()[user][used]]
        for user in sorted(
            set(users) - seen, key=lambda user: (-_shared_folders(user, module), user)
        ):
            if (TESTS / own_test(user)).is_file():
                return own_test(user), f"used by {user}"
            direct = _importing_test(user, module)
            if direct is not None:
                return direct, f"used by {user}"
            waiting.append(user)
            seen.add(user)
    return None


def _importing_test(module: str, near: str) -> str | None:
    """The test that imports the most names of the module; one in the same folder first."""
    counts = {test: imports[module] for test, imports in _imports_of_tests().items()}
    used = [test for test, count in counts.items() if count]
    return min(
        used, key=lambda test: (-_shared_folders(test, near), -counts[test], test), default=None
    )


def _shared_folders(one: str, other: str) -> int:
    pairs = zip(Path(one).parts[:-1], Path(other).parts[:-1], strict=False)
    return sum(a == b for a, b in pairs)


def _defines_something(path: Path) -> bool:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in body)


def _dotted(module: str) -> str:
    return ".".join(["keepers", *Path(module).with_suffix("").parts]).removesuffix(".__init__")


@cache
def _imports_of_tests() -> dict[str, Counter[str]]:
    tests = {path.relative_to(TESTS).as_posix(): path for path in TESTS.rglob("test_*.py")}
    return {test: _imported_modules(path) for test, path in tests.items()}


@cache
def _imports_of_modules() -> dict[str, Counter[str]]:
    return {module: _imported_modules(SOURCE / module) for module in modules()}


def _imported_modules(path: Path) -> Counter[str]:
    """How many names of each module of keepers a file imports; re-exports are followed."""
    by_name = {_dotted(module): module for module in modules()}
    found: Counter[str] = Counter()
    for name in _imported_names(path):
        name = _re_exports().get(name, name)
        home = next((n for n in (name, name.rpartition(".")[0]) if n in by_name), None)
        if home is not None:
            found[by_name[home]] += 1
    return found


@cache
def _re_exports() -> dict[str, str]:
    """For what a package offers, where it is defined."""
    found = {}
    for path in SOURCE.rglob("__init__.py"):
        package = _dotted(path.relative_to(SOURCE).as_posix())
        for name in _imported_names(path):
            found[f"{package}.{name.rpartition('.')[2]}"] = name
    return {name: found.get(home, home) for name, home in found.items()}


def _imported_names(path: Path) -> Iterator[str]:
    """What a file imports from keepers, as dotted names."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("keepers"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("keepers"))


def main() -> None:
    """Print a line for each module without a test of its own."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--missing", action="store_true", help="only what the list lacks")
    known = covered_elsewhere() if parser.parse_args().missing else {}
    for module in without_own_test():
        if module not in known:
            test, why = covering_test(module) or ("", "no test found")
            print(f'"{module}" = {{ test = "{test}", why = "{why}" }}')


if __name__ == "__main__":
    main()
