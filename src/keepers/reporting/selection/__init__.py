"""The report of one selection: what was asked, what was found, and how to repeat it.

Three stages, each tested on its own: `summary` (numbers and strings), `figures` (SVG) and `page`
(one HTML file that opens offline).
"""

from keepers.reporting.selection.redundancy import nearest_neighbours
from keepers.reporting.selection.report import SelectionReport, make_report

__all__ = ["SelectionReport", "make_report", "nearest_neighbours"]
