"""The page of a live view. It asks its own server for new readings once a second; nothing else is loaded."""

from markupsafe import Markup

from results.report.render import inline, template


def render_live(name: str) -> str:
    """Return the page of the testbed `name` as HTML text."""
    return template("live.html.j2").render(
        name=name,
        style=inline("vendor/uPlot.min.css") + inline("templates/report.css") + inline("templates/live.css"),
        script=Markup("\n").join(inline(part) for part in ("vendor/uPlot.iife.min.js", "templates/live.js")),
    )
