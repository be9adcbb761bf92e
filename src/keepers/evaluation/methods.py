"""What the name of a method stands for: a selector of keepers, or MODULE:CLASS of one's own."""

import hashlib
import importlib
import inspect
import os
import sys
from functools import lru_cache
from pathlib import Path

from keepers.data.wording import first_line
from keepers.exceptions import ParameterError, shortened
from keepers.methods import all_selectors
from keepers.selectors import RankingSelector

__all__ = ["find_selector", "versioned", "without_version"]


def find_selector(name: str) -> type[RankingSelector]:
    """The class of a method; a module is looked for where Python does and in the current folder."""
    known = all_selectors()
    if name in known:
        return known[name]
    if ":" in name:
        return _own(without_version(name))
    raise ParameterError(
        f"there is no method {shortened(name)}; the methods are {', '.join(known)}, or MODULE:CLASS"
    )


def _own(name: str) -> type[RankingSelector]:
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # processes that fit inherit the path
    module, _, title = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), title)
    except Exception as error:  # whatever the module does when it is imported
        raise ParameterError(
            f"A method of your own is MODULE:CLASS, with the module in the current folder or "
            f"installed; {shortened(name)} cannot be imported ({type(error).__name__}: "
            f"{first_line(error)})."
        ) from error
    if not (isinstance(found, type) and issubclass(found, RankingSelector)):
        raise ParameterError(
            f"A method must be a subclass of RankingSelector; {shortened(name)} is not."
        )
    return found


@lru_cache
def versioned(name: str) -> str:
    """The name under which fits are stored; it changes with the file of a method of one's own."""
    if ":" not in name:
        return name
    try:
        content = Path(inspect.getfile(find_selector(name))).read_bytes()
    except (OSError, TypeError) as error:
        raise ParameterError(
            f"A method of your own must come from a file; {shortened(name)} does not "
            f"({first_line(error)})."
        ) from error
    return f"{name}@{hashlib.sha256(content).hexdigest()[:12]}"


def without_version(name: str) -> str:
    """The name as it was given."""
    return name.partition("@")[0]
