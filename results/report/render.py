"""One run to one HTML file. Style, script and data are inlined; nothing is loaded from anywhere."""

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from results.contract.manifest import Manifest
from results.contract.texts import digits, plural
from results.contract.verdict import Finding, overall
from results.criteria.judgement import Changed, skipped
from results.criteria.measures import MoveMeasures
from results.criteria.quantities import rate, size
from results.criteria.run_view import BY_END, RunView
from results.criteria.sample_series import RunSeries
from results.report import page, traffic
from results.report.charts import charts, client_charts, flights
from results.report.incident import render_incident
from results.report.relocation import render_relocation
from results.report.steps import render_steps


def render(
    manifest: Manifest,
    samples: Any,
    events: Any,
    criteria: Sequence[Finding],
    measures: MoveMeasures,
    changed: Sequence[Changed] = (),
) -> str:
    """Return the report as HTML text; `samples` and `events` as Arrow tables or pandas DataFrames.

    `changed` are the criteria that were judged otherwise when the run was recorded. Raise ValueError when the
    manifest has neither a move nor an incident nor steps nor a relocation.
    """
    verdict = overall(criteria)
    shared: dict[str, Any] = {
        "manifest": manifest,
        "changed": changed,
        "recorded": page.WORDS[manifest.verdict],
        "state": verdict,
        "word": page.WORDS[verdict],
        "sections": page.sections(criteria),
        "logs": page.log_rows(manifest),
        "jvms": page.jvms(manifest),
    }
    if manifest.failure:
        early = "The experiment ended early. The run keeps its samples and events."
        return _short_page(RunSeries(samples, events), early, manifest.failure, shared)
    if manifest.incident is not None:
        filled = render_incident(manifest, samples, events, criteria)
        data = embedded(filled.pop("charts"))
        style = inline("vendor/uPlot.min.css") + inline("templates/report.css")
        return template("incident.html.j2").render(
            shared | filled, data=data, style=style, script=_script("incident.js")
        )
    if manifest.steps is not None:
        filled = render_steps(manifest, samples, events, criteria)
        style = inline("templates/report.css") + inline("templates/steps.css")
        return template("steps.html.j2").render(shared | filled, style=style)
    if manifest.relocation is not None:
        filled = render_relocation(manifest, manifest.relocation, criteria, measures)
        style = inline("templates/report.css") + inline("templates/relocation.css")
        return template("relocation.html.j2").render(shared | filled, style=style)
    run, move = RunSeries(samples, events), manifest.move
    if RunView(manifest).judged_by_end:
        ended = "; ".join(each.why for each in criteria if each.name in BY_END)
        arguments = [f"{name.removeprefix('argument.')}={value}" for name, value in manifest.parameters.items()]
        what = next(BY_END[name] for name in manifest.criteria or () if name in BY_END)
        return _short_page(run, f"{what}: {' '.join(arguments)}", ended, shared)
    if move is None:
        raise ValueError(f"run {manifest.run_id}: its manifest has no move to report")
    panels = charts(move, measures, run, page.summaries(measures, move))
    latencies = client_charts(measures, run, panels)
    return template("report.html.j2").render(
        shared,
        move=move,
        measures=measures,
        question=page.question(manifest, move, measures),
        answer=page.answer(criteria, measures, move),
        figures=page.figures(manifest, measures, move),
        left_out=skipped(manifest),
        measured=page.measured_rows(measures),
        charts=panels,
        latencies=latencies,
        phases=traffic.phase_rows(measures),
        expected=traffic.expected_rows(measures, move),
        durations=traffic.duration_rows(measures, move),
        clients=traffic.client_rows(measures.clients),
        load=traffic.load_rows(manifest.facts.live),
        flights=flights(measures, run),
        nic_uses=traffic.nic_uses(manifest, measures),
        data=embedded([asdict(p) for p in panels] + [asdict(p) for p in latencies]),
        style=inline("vendor/uPlot.min.css") + inline("templates/report.css"),
        script=_script("report.js"),
    )


def render_live(name: str) -> str:
    """Return the page of the live view of the testbed `name`. It asks its own server for new readings once a second."""
    style = inline("vendor/uPlot.min.css") + inline("templates/report.css") + inline("templates/live.css")
    script = Markup("\n").join(inline(part) for part in ("vendor/uPlot.iife.min.js", "templates/live.js"))
    return template("live.html.j2").render(name=name, style=style, script=script)


def _short_page(run: RunSeries, question: str, answer: str, shared: Mapping[str, Any]) -> str:
    """Return the page of a run whose criteria and last events are all there is to see."""
    events, style = page.last_events(run), inline("templates/report.css")
    return template("failed.html.j2").render(shared, question=question, answer=answer, events=events, style=style)


def template(name: str) -> jinja2.Template:
    """Return a template of this package; it escapes what is put into it."""
    return _environment().get_template(name)


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("results.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(rate=rate, size=size, when=page.when, tidy=page.tidy, digits=digits, plural=plural)
    return environment


def embedded(document: Any) -> Markup:
    """Return a document as JSON that cannot end the script element which holds it, whatever its strings say."""
    text = json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _script(page_js: str) -> Markup:
    """Return a page's own script, after what all pages share."""
    parts = ("vendor/uPlot.iife.min.js", "templates/chart.js", f"templates/{page_js}")
    return Markup("\n").join(inline(part) for part in parts)


def inline(path: str) -> Markup:
    """Return a style or script of this package, to be put into its element. Raise ValueError when it would end that."""
    text = resources.files("results.report").joinpath(path).read_text(encoding="utf-8")
    if "</script" in text or "</style" in text:
        raise ValueError(f"{path}: it would end the element it is inlined into")
    return Markup(text)
