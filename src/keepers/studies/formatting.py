"""Numbers and names as figures and report show them."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from keepers.reporting.report_parts import display_name

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
DASH = "–"
_LONGEST_SLUG = 60  # file systems take 255 bytes


def short(name: str, longest: int = 26) -> str:
    """A name from the data, made safe to show and not too long."""
    return display_name(name, longest)


def value(share: float | None) -> str:
    """ACC or NMI with three decimals; a dash if there is none."""
    return DASH if share is None else f"{share:.3f}"


def points(share: float | None) -> str:
    """A difference of shares in percentage points, with its sign; a dash if there is none.

    Examples
    --------
    >>> points(0.0312), points(-0.001), points(0.0001)
    ('+3.1', '−0.1', '0.0')
    """
    if share is None:
        return DASH
    text = f"{100 * share:+.1f}".replace("-", "−")
    return text if text not in ("+0.0", "−0.0") else "0.0"


def number(setting: Any) -> str:
    """A setting in short; powers of ten as such.

    Examples
    --------
    >>> number(1e-6), number(0.5), number(10), number("scale")
    ('10⁻⁶', '0.5', '10', 'scale')
    """
    if isinstance(setting, bool) or not isinstance(setting, int | float):
        return display_name(str(setting))
    mantissa, exponent = f"{setting:e}".split("e")
    if float(mantissa) == 1 and not 0.01 <= setting < 1000:
        return "10" + str(int(exponent)).translate(_RAISED)
    return f"{setting:g}"


def probability(p: float) -> str:
    """A p-value; small ones by their bound.

    Examples
    --------
    >>> probability(0.0312), probability(3e-9)
    ('0.031', '< 0.0001')
    """
    if p < 1e-4:
        return "< 0.0001"
    return f"{p:.3f}" if p >= 1e-3 else f"{p:.4f}"


def settings(params: Mapping[str, Any]) -> str:
    """Chosen settings in a few words; empty if nothing was chosen."""
    return ", ".join(f"{display_name(name)} = {number(chosen)}" for name, chosen in params.items())


def seconds(time: float) -> str:
    """A time in a fitting unit.

    Examples
    --------
    >>> seconds(0.0042), seconds(3.21), seconds(75), seconds(7300)
    ('4 ms', '3.2 s', '75 s', '2.0 h')
    """
    if time < 0.1:
        return f"{1000 * time:.0f} ms"
    if time < 10:
        return f"{time:.1f} s"
    if time < 120:
        return f"{time:.0f} s"
    return f"{time / 60:.0f} min" if time < 7200 else f"{time / 3600:.1f} h"


def slug(text: str) -> str:
    """A name that is safe in files and in HTML, and different for every text.

    Examples
    --------
    >>> slug("default gamma"), slug("Gamma!")
    ('default-gamma', 'gamma-5bdab3')
    """
    if len(text) <= _LONGEST_SLUG and re.fullmatch(r"[a-z0-9]+( [a-z0-9]+)*", text):
        return text.replace(" ", "-")
    words = "-".join(re.findall(r"[a-z0-9]+", text.lower()))[:_LONGEST_SLUG].strip("-")
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{words}-{digest}" if words else digest
