"""Choices made from X alone: the path along gamma, stability, settings and the number to keep."""
