"""The HTML report of one run: one self-contained file, readable without a network."""

from results.report.render import render

__all__ = ["render"]
