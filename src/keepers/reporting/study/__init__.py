"""The report of a study: tables, figures and one offline page."""

from keepers.reporting.study.writing import write_study

__all__ = ["write_study"]
