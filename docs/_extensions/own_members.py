"""Reference pages show what keepers defines; what scikit-learn defines is named, not repeated."""

import dataclasses
import importlib
import inspect
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import keepers


def _home(cls: type, name: str) -> str:
    """The module of the class in which a member is defined."""
    return next((base.__module__ for base in cls.__mro__ if name in vars(base)), "")


def _methods(module: str, name: str) -> dict[str, str]:
    """Public methods of a class, and the module that defines each."""
    cls = getattr(importlib.import_module(module), name)
    found = {}
    for member in dir(cls):
        value = inspect.getattr_static(cls, member)
        callable_ = inspect.isfunction(value) or isinstance(value, classmethod | staticmethod)
        if not member.startswith("_") and (callable_ or isinstance(value, property)):
            found[member] = _home(cls, member)
    return found


def fields(module: str, name: str) -> list[str]:
    """Public fields of a dataclass, which carry their descriptions in the class."""
    cls = getattr(importlib.import_module(module), name)
    if not dataclasses.is_dataclass(cls) or "Parameters\n" in (cls.__doc__ or ""):
        return []
    return [field.name for field in dataclasses.fields(cls) if not field.name.startswith("_")]


def own_members(module: str, name: str) -> list[str]:
    """Methods and properties that keepers defines."""
    return [
        member for member, home in _methods(module, name).items() if home.split(".")[0] == "keepers"
    ]


def scikit_learn_members(module: str, name: str) -> list[str]:
    """Methods that come from scikit-learn."""
    return [
        member for member, home in _methods(module, name).items() if home.split(".")[0] == "sklearn"
    ]


def _hide_constructor(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: Any
) -> tuple[str, str] | None:
    """Users read results and do not construct them, so their constructor is not shown."""
    is_result = what == "class" and fields(*name.rsplit(".", 1))
    return ("", "") if is_result else None


def _link_by_short_name(
    app: Sphinx, env: BuildEnvironment, node: nodes.Element, contnode: nodes.TextElement
) -> nodes.reference | None:
    """Resolve `SPCAFS`, in any module, to ``keepers.SPCAFS``."""
    name = node.get("reftarget", "")
    if node.get("refdomain") != "py" or name not in keepers.__all__:
        return None
    return env.domains.python_domain.resolve_xref(
        env, node["refdoc"], app.builder, "obj", f"keepers.{name}", node, contnode
    )


def setup(app: Sphinx) -> dict[str, Any]:
    """Hand the lists to the templates of the reference pages."""
    app.config.autosummary_context |= {
        "fields": fields,
        "own_members": own_members,
        "scikit_learn_members": scikit_learn_members,
    }
    app.connect("autodoc-process-signature", _hide_constructor)
    app.connect("missing-reference", _link_by_short_name)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
