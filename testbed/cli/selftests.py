"""The table of `testbed selftest`, as text, JSON and Markdown."""

from typing import Any

from results.render import NOTHING, Code, document, markdown_table, table
from testbed.runner.detection import DefectDetection, criterion_of
from testbed.runner.selftest import SelftestResult

HEADER = ("RESULT", "DEFECT", "RUN", "FOUND", "AFTER", "95 % INTERVAL", "BY", "EXPECTED")


def row(each: DefectDetection) -> tuple[str, ...]:
    """Return the cells of a defect, or of healthy brokers."""
    low, high = each.interval or (0.0, 0.0)
    expected = {True: "yes", False: "no"}[each.as_expected] if each.by and not each.healthy else NOTHING
    return (
        _result(each),
        each.name,
        " ".join([each.experiment, *each.settings]),
        f"{each.found} of {len(each.played)}",
        str(each.after or NOTHING),
        f"{low:.0%} to {high:.0%}" if each.interval else NOTHING,
        ", ".join(f"{name} ({count})" if count > 1 else name for name, count in _by(each).items()) or NOTHING,
        expected,
    )


def _result(each: DefectDetection) -> str:
    return _word(each, each.result)


def _word(each: DefectDetection, result: str) -> str:
    """Return the word of a result; of healthy brokers, whether there was an alarm."""
    if not each.healthy:
        return result
    return {"found": "false alarm", "sometimes": "false alarm", "missed": "no alarm"}.get(result, result)


def _by(each: DefectDetection) -> dict[str, int]:
    """Return the names that found it, without hosts and directions."""
    found: dict[str, int] = {}
    for name, count in each.by.items():
        own = criterion_of(name)
        found[own] = max(found.get(own, 0), count)
    return found


def summary(result: SelftestResult) -> str:
    """Return one line: how many defects were found, missed and not known, and how many false alarms there were."""
    broken = [each for each in result.detections if not each.healthy]
    counts = {word: sum(each.result == word for each in broken) for word in dict.fromkeys(e.result for e in broken)}
    healthy = sum(len(each.played) for each in result.detections if each.healthy)
    summary = ", ".join(f"{count} {word}" for word, count in counts.items()) or "no defect played"
    return f"{summary}; {result.alarms} alarms in {healthy} plays of healthy brokers"


def as_text(result: SelftestResult) -> str:
    """Return the table, a line for each play that came to nothing, and the summary."""
    lines = [table(HEADER, [row(each) for each in result.detections]), ""]
    for each in result.detections:
        lines += [f"{each.name}: {_word(each, trial.result)}: {trial.why}" for trial in each.trials if trial.why]
    again = "" if result.complete else f"; `testbed selftest --resume {result.campaign.id}` goes on"
    return "\n".join([*lines, f"{summary(result)}  ({result.campaign.id}: {result.why_ended}{again})"])


def as_json(result: SelftestResult) -> str:
    """Return one JSON document with every play and its runs."""
    return document(
        {
            "series": result.campaign.id,
            "store": result.campaign.store,
            "kafka": list(result.kafka),
            "complete": result.complete,
            "ended": result.why_ended,
            "false_alarms": result.alarms,
            "detections": [_document(each) for each in result.detections],
        }
    )


def _document(each: DefectDetection) -> dict[str, Any]:
    return {
        "name": each.name,
        "defects": list(each.defects),
        "experiment": each.experiment,
        "settings": list(each.settings),
        "result": _result(each),
        "found": each.found,
        "of": len(each.played),
        "after": each.after,
        "interval": each.interval,
        "by": each.by,
        "expected": list(each.expected),
        "as_expected": each.as_expected,
        "plays": list(each.trials),
    }


def as_markdown(result: SelftestResult, how: str) -> str:
    """Return the table as a page. `how` is the way in which defects were looked for."""
    cells = []
    for each in result.detections:
        first, name, run, *others = row(each)
        cells.append((first, Code(name), Code(run), *others))
    header = ("", "defect", "run", "found", "after", "95 % interval", "by", "expected")
    notes = [
        f"- {each.name}: {_word(each, t.result)}: {' '.join(t.why.split())}"
        for each in result.detections
        for t in each.trials
        if t.why
    ]
    return "\n".join(
        [
            f"# Self-test by `{how}`, Kafka {', '.join(result.kafka)}",
            "",
            f"{summary(result)}.",
            "[What the columns mean](../selftest.md#the-table)",
            "",
            *markdown_table(header, cells),
            *(["", *notes] if notes else []),
            "",
        ]
    )
