"""From what is to be said, and the figures, to one HTML file that asks nobody for anything."""

from collections.abc import Mapping, Sequence
from importlib.resources import files

from keepers.studies import formatting as wording
from keepers.studies.drawing import Picture
from keepers.studies.palette import looks_of, style_variables
from keepers.studies.paper_claims.judging import Claim, Evidence
from keepers.studies.report_content import look_at
from keepers.studies.scores import FLOORS, MEASURES, method_choices
from keepers.studies.study_figures import slug

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
    folder = files("keepers.studies") / "templates"
    return (folder / name).read_text(encoding="utf-8").replace("\r\n", "\n")
