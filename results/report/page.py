"""The texts of the report: the question, the answer, key figures, and rows of its tables. No markup."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from results.contract.jvm import jvm_in_words
from results.contract.manifest import Manifest, Move
from results.contract.texts import counted, plural
from results.contract.verdict import Finding, Verdict, overall
from results.criteria.criterion import FACTS, PRECONDITIONS, RATES
from results.criteria.judgement import catalogue
from results.criteria.measures import MoveMeasures
from results.criteria.model import allowed, bound_of, estimate
from results.criteria.phase_directions import PhaseDirection, bottleneck_directions, phase_directions, quotas_text
from results.criteria.quantities import US, percent, rate, size
from results.criteria.sample_series import RunSeries
from results.render import NOTHING
from results.report.traffic import against

SECTIONS = (RATES, FACTS, PRECONDITIONS)
EVENTS_SHOWN, EVENT_SHOWN = 40, 2000
"""Events, and characters of each."""
NOTHING_JUDGED = "Cannot say: nothing was judged."
"""The answer of a page without criteria."""
_THINGS = ("answer", "difference", "log", "move", "partition", "read", "shrink", "state", "time")
COUNTED = {f"{word}s": word for word in _THINGS}
"""Units of findings that are things."""
NUMBERED = ("wrong", "metrics that are always 0")
"""Units of whole numbers that are the same words of one as of several."""
WORDS: dict[Verdict, str] = {"pass": "Pass", "fail": "Fail", "inconclusive": "Inconclusive"}


@dataclass(frozen=True, slots=True)
class Row:
    """A finding as the table shows it: with its criterion's title, and what was observed in words."""

    finding: Finding
    title: str
    observed: str

    @property
    def word(self) -> str:
        """Return the verdict in words."""
        return WORDS[self.finding.verdict]


@dataclass(frozen=True, slots=True)
class Section:
    """Criteria of one kind, and how many of them passed."""

    title: str
    rows: tuple[Row, ...]

    @property
    def passed(self) -> int:
        """Return how many passed."""
        return sum(r.finding.verdict == "pass" for r in self.rows)


@dataclass(frozen=True, slots=True)
class Figure:
    """A key figure: its label, its value, and a line that puts it in proportion."""

    label: str
    value: str
    unit: str
    note: str


def title_of(finding: Finding) -> str:
    """Return the title of a finding's criterion; a finding with a name of its own is called by that."""
    criterion = catalogue().get(finding.name)
    return finding.name if criterion is None else criterion.title


def sections(criteria: Sequence[Finding]) -> tuple[Section, ...]:
    """Return all findings by the section of their criterion; findings with names of their own come last."""
    known = {name: criterion.section for name, criterion in catalogue().items()}
    by_section: dict[str, list[Row]] = {title: [] for title in (*SECTIONS, "Other")}
    for row in rows(criteria):
        by_section[known.get(row.finding.name, "Other")].append(row)
    return tuple(Section(title, tuple(found)) for title, found in by_section.items() if found)


def rows(criteria: Sequence[Finding]) -> list[Row]:
    """Return all findings as the table shows them, those of one name together."""
    names = [c.name for c in criteria]
    return [Row(c, title_of(c), observed(c)) for c in sorted(criteria, key=lambda c: names.index(c.name))]


def observed(criterion: Finding, form: str = ".3f") -> str:
    """Return an observed value in words, by its unit; a number of another unit in `form`."""
    value = criterion.observed
    if value is None:
        return "not observed"
    if isinstance(value, str):
        return value
    if criterion.unit == "bytes":
        return size(value)
    if criterion.unit == "bytes/s":
        return rate(value)
    if criterion.unit == "fraction":
        return percent(value)
    if criterion.unit in COUNTED:
        return plural(round(value), COUNTED[criterion.unit])
    if criterion.unit in NUMBERED:
        return f"{value:g} {criterion.unit}"
    return f"{value:{form}} {criterion.unit}".strip()


def question(manifest: Manifest, move: Move, measures: MoveMeasures) -> str:
    """Return what was asked, in one sentence; with all quotas where the measures know of several."""
    throttled = [f for f in move.flows if f.kind == "throttled"]
    partitions = len({(f.topic, p) for f in throttled for p in f.partitions})
    ways = " and ".join(dict.fromkeys(f"{f.leader} to {f.follower}" for f in throttled)) or "nowhere"
    settings = "tuned fetch settings" if move.fetch == "tuned" else "Kafka's default fetch settings"
    versions = " and ".join(sorted(set(manifest.versions.kafka.values())))
    return (
        f"Does Kafka {versions} keep to a replication quota of {quotas_text(measures, move)} while "
        f"{counted(partitions, 'partition', 'moves')} from {ways} with {settings}?"
    )


def answer(criteria: Sequence[Finding], measures: MoveMeasures, move: Move) -> str:
    """Return the verdict in one sentence: figures when it passed, else the first cause."""
    verdict = overall(criteria)
    if verdict == "pass":
        return f"Yes: {_figures(measures, move)}."
    wrong = [c for c in criteria if c.verdict == verdict]
    if not wrong:
        return NOTHING_JUDGED
    causes = [c for c in wrong if not c.why.startswith("not judged")] or wrong
    first = causes[0]
    opening = "No" if verdict == "fail" else "Cannot say"
    title = title_of(first)
    at = f" ({first.where})" if first.where else ""
    subject = title if title[:2].isupper() else title[0].lower() + title[1:]
    text = f"{opening}: {subject}{at} \N{EN DASH} {first.why}"
    if verdict == "fail":
        text += f"; expected: {first.expected}"
    more = len(wrong) - 1
    if more:
        text += f"; {more} more {'criterion' if more == 1 else 'criteria'} {'fail' if verdict == 'fail' else 'open'}"
    return text + "."


def _figures(measures: MoveMeasures, move: Move) -> str:
    highest, steady = _highest(measures), _slowest(measures, move)
    parts = []
    if highest:
        share, top = highest
        text = f"the highest {move.window_s:g} s window was {percent(share)}"
        bound = bound_of(move, top.rates.host, top.rates.direction, top.quota)
        if bound is not None and top.rates.worst_window is not None:
            bound = allowed(bound, top.rates.worst_window.in_sync_bytes)
        most = f", where the bound allows {percent(bound / move.window_s / top.quota)}" if bound else ""
        parts.append(f"{text} of the quota{most}")
    if steady:
        parts.append(f"the steady rate was {percent(steady[0])} of the quota")
    return "; ".join(parts) or "every criterion passed"


def _highest(measures: MoveMeasures) -> tuple[float, PhaseDirection] | None:
    """Return the highest window's rate as a share of its quota, and where it was."""
    found = [(h / end.quota, end) for end in phase_directions(measures) if (h := end.rates.highest_window_bytes_per_s)]
    return max(found, key=lambda each: each[0], default=None)


def _slowest(measures: MoveMeasures, move: Move) -> tuple[float, PhaseDirection] | None:
    """Return the lowest steady rate as a share of its quota, of where the quota is to bind, and where it was."""
    ends = bottleneck_directions(measures, move)
    found = [(mean / end.quota, end) for end in ends if (mean := end.rates.steady_bytes_per_s)]
    return min(found, key=lambda each: each[0], default=None)


def figures(manifest: Manifest, measures: MoveMeasures, move: Move) -> tuple[Figure, ...]:
    """Return the few numbers that one remembers."""
    found = []
    if highest := _highest(measures):
        share, top = highest
        note = rate(top.rates.highest_window_bytes_per_s or 0.0)
        found.append(Figure(f"Highest {move.window_s:g} s window", f"{share * 100:.1f}", "% of quota", note))
    if steady := _slowest(measures, move):
        share, at = steady
        seconds = at.rates.steady.seconds if at.rates.steady else 0.0
        note = f"{rate(share * at.quota)} over {seconds:.0f} s"
        found.append(Figure("Steady rate", f"{share * 100:.1f}", "% of quota", note))
    moved = measures.moved_s or measures.throttled_s
    if moved:
        if move.model_seconds:
            note = f"the model says {against(move.model_seconds, moved)}"
        else:
            known = estimate(manifest.run_id, move, measures)
            kip73_s, observed_s = known.kip73_s, known.observed_s
            note = "KIP-73: never ends" if kip73_s is None else f"KIP-73 estimates {against(kip73_s, observed_s)}"
        found.append(Figure("Time to move", f"{moved:.1f}", "s", note))
    records = manifest.facts.records
    if records:
        intact = max(0, records.found - records.corrupt - records.duplicated)
        # Rounded down: one record of a million that is lost leaves no 100 %.
        rounded = f"{intact * 100_000 // max(1, records.expected) / 1000:g}"
        note = f"{intact:,} of {records.expected:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
        found.append(Figure("Records intact", rounded, "%", note))
    return tuple(found)


def measured_rows(measures: MoveMeasures) -> list[tuple[str, ...]]:
    """Return, per host, direction and phase, the figures in which throttles are compared, as fractions of the quota."""
    rows: list[tuple[str, ...]] = []
    for end in phase_directions(measures):
        r, steady = end.rates, end.rates.steady

        def of_quota(value: float | None, quota: float = end.quota) -> str:
            return NOTHING if value is None else f"{value / quota:.3f}"

        rows.append(
            (
                f"{r.host} {r.direction}" + (f", phase {end.number}" if end.number else ""),
                size(r.total_bytes),
                of_quota(r.steady_bytes_per_s),
                of_quota(r.highest_window_bytes_per_s),
                of_quota(steady.lowest_window_bytes_per_s if steady else None),
                of_quota(r.highest_second_bytes_per_s),
                of_quota(r.warmup_bytes_per_s),
                NOTHING if steady is None or steady.variation is None else f"{steady.variation:.2f}",
            )
        )
    return rows


def summaries(measures: MoveMeasures, move: Move) -> dict[str, str]:
    """Return a sentence for each chart, for those who do not see it."""
    texts = {}
    one = len(measures.phases) < 2
    for r in measures.rates:
        text = f"{size(r.total_bytes)} of throttled bytes"
        if r.end_s is not None:
            text += f" in {r.end_s:.1f} s"
        if r.highest_window_bytes_per_s:
            text += f"; highest {move.window_s:g} s window {rate(r.highest_window_bytes_per_s)}"
            text += f", {percent(r.highest_window_bytes_per_s / move.quota_bytes_per_s)} of the quota" if one else ""
        texts[f"{r.host}-{r.direction}"] = text
    for c in measures.controls:
        peak = f", at most {rate(c.peak_bytes_per_s)}" if c.peak_bytes_per_s else ""
        texts[f"{c.host}-control"] = f"{size(c.total_bytes)} of unthrottled control bytes{peak}"
    return texts


def tidy(text: str) -> str:
    """Return a text whose numbers stay with their units at the end of a line, and whose minus is one."""
    bound = re.sub(r"(\d) (s|B|kB|MB|GB|MB/s|kB/s|GB/s|%)(?=\W|$)", "\\1\N{NO-BREAK SPACE}\\2", text)
    return re.sub(r"(?<![\w.\-])-(?=\d)", "\N{MINUS SIGN}", bound)


def log_rows(manifest: Manifest) -> list[tuple[str, ...]]:
    """Return what the brokers' logs said and nothing explains, in the order of time."""
    findings = [f for log in manifest.facts.logs or () for f in log.findings]
    return [
        (
            _clock(f.ts_us) if f.ts_us else "",
            f.host,
            f.level,
            str(f.count),
            f.text,
            f.logger,
        )
        for f in sorted(findings, key=lambda f: f.ts_us)
    ]


def jvms(manifest: Manifest) -> list[tuple[str, str]]:
    """Return each JVM of Kafka in words, heap, garbage collector and flags, after the hosts that have it."""
    alike: dict[str, list[str]] = {}
    for name, host in manifest.topology.document.get("hosts", {}).items():
        if (kafka := host.get("kafka")) is not None:
            jvm = kafka.get("jvm") or {}
            alike.setdefault(jvm_in_words(jvm.get("heap"), jvm.get("gc"), jvm.get("flags", ())), []).append(name)
    return [(", ".join(names), words) for words, names in alike.items()]


def last_events(run: RunSeries) -> list[tuple[str, str, str]]:
    """Return the last events of a run: time of day, kind, text. Long texts are cut."""
    return [(_clock(us), kind, text[:EVENT_SHOWN]) for us, kind, text in run.last_events(EVENTS_SHOWN)]


def _clock(us: int) -> str:
    """Return the time of day, in UTC; empty for an instant that is in no calendar."""
    try:
        return f"{datetime.fromtimestamp(us / US, UTC):%H:%M:%S}"
    except (ValueError, OverflowError):
        return ""


def when(text: str) -> str:
    """Return a time for people: ``21 November 2026, 18:15 UTC``."""
    moment = datetime.fromisoformat(text)
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"
