"""One run to one HTML file. Style, script and data are inlined; nothing is loaded from anywhere."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from results.criteria.measures import MoveMeasures
from results.criteria.series import RunSeries
from results.criteria.words import rate, size
from results.manifest import Manifest
from results.report import page
from results.report.charts import charts
from results.report.incident import render_incident
from results.verdict import Criterion, overall


def render(manifest: Manifest, samples: Any, events: Any, criteria: Sequence[Criterion], measures: MoveMeasures) -> str:
    """The report as HTML text; `samples` and `events` as Arrow tables or pandas DataFrames.

    Raises ValueError when the manifest has neither a move nor an incident.
    """
    if manifest.incident is not None:
        return _incident(manifest, samples, events, criteria)
    move = manifest.move
    if move is None:
        raise ValueError(f"run {manifest.run_id}: its manifest has no move to report")
    panels = charts(move, measures, RunSeries(samples, events), page.summaries(measures, move))
    return _template("report.html.j2").render(
        manifest=manifest,
        move=move,
        measures=measures,
        verdict=overall(criteria),
        word=page.WORDS[overall(criteria)],
        question=page.question(manifest, move),
        answer=page.answer(criteria, measures, move),
        figures=page.figures(manifest, measures, move),
        sections=page.sections(criteria),
        measured=page.measured_rows(measures, move),
        logs=page.log_rows(manifest),
        charts=panels,
        data=embedded([asdict(p) for p in panels]),
        style=_inline("vendor/uPlot.min.css") + _inline("templates/report.css"),
        script=_inline("vendor/uPlot.iife.min.js") + Markup("\n") + _inline("templates/report.js"),
    )


def _incident(manifest: Manifest, samples: Any, events: Any, criteria: Sequence[Criterion]) -> str:
    filled = render_incident(manifest, samples, events, criteria)
    charts_of_it = filled.pop("charts")
    return _template("incident.html.j2").render(
        **filled,
        data=embedded(charts_of_it),
        style=_inline("vendor/uPlot.min.css") + _inline("templates/report.css"),
        script=_inline("vendor/uPlot.iife.min.js") + Markup("\n") + _inline("templates/incident.js"),
    )


def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("results.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(rate=rate, size=size, when=page.when, tidy=page.tidy)
    return environment.get_template(name)


def embedded(document: Any) -> Markup:
    """A document as JSON that cannot end the script element which holds it, whatever its strings say."""
    text = json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _inline(path: str) -> Markup:
    text = resources.files("results.report").joinpath(path).read_text(encoding="utf-8")
    if "</script" in text or "</style" in text:
        raise ValueError(f"{path}: it would end the element it is inlined into")
    return Markup(text)
