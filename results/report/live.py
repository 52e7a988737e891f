"""The page of a live view. It asks its own server for new readings once a second; nothing else is loaded."""

from results.report.render import inline, script, template


def render_live(name: str) -> str:
    """Return the page of the testbed `name` as HTML text."""
    return template("live.html.j2").render(
        name=name,
        style=inline("vendor/uPlot.min.css") + inline("templates/report.css") + inline("templates/live.css"),
        script=script("live.js"),
    )
