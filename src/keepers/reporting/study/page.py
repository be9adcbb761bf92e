"""From what is to be said, and the figures, to one HTML file that asks nobody for anything."""

from collections.abc import Mapping, Sequence
from importlib.resources import files

from keepers.evaluation.claims import Claim, Evidence
from keepers.evaluation.summary import FLOORS, MEASURES, method_choices
from keepers.reporting.study import wording
from keepers.reporting.study.curves import slug
from keepers.reporting.study.drawing import Picture
from keepers.reporting.study.palette import looks_of, style_variables
from keepers.reporting.study.view import look_at

__all__ = ["render"]


def render(evidence: Evidence, claims: Sequence[Claim], pictures: Mapping[str, Picture]) -> str:
    """The page as text; the same for the same study."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(_template),
    )
    environment.filters.update(
        difference=wording.difference,
        number=wording.number,
        seconds=wording.seconds,
        settings=wording.settings,
        probability=wording.probability,
        short=wording.short,
        slug=slug,
        value=wording.value,
    )
    run = evidence.run
    choices = method_choices(run)
    return environment.get_template("page.html.jinja").render(
        view=look_at(evidence, claims),
        spec=run.spec,
        measures=MEASURES,
        floors={title for title, method in choices.items() if method.name in FLOORS},
        leading={title for title, look in looks_of(run.spec.methods).items() if look.on_top},
        pictures=pictures,
        svg=lambda picture: Markup(picture.inline),
        style=Markup(_template("style.css")),
        colours=Markup(_colours()),
    )


def _colours() -> str:
    light, dark = (
        " ".join(f"{name}: {colour};" for name, colour in variables.items())
        for variables in style_variables()
    )
    return (
        f":root {{ {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
    )


def _template(name: str) -> str:
    folder = files("keepers.reporting.study") / "templates"
    return (folder / name).read_text(encoding="utf-8").replace("\r\n", "\n")
