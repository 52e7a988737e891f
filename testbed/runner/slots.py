"""The real executor: each slot is an experiment's run on a testbed of the series."""

import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime

from results.compare import values_of
from results.contract.manifest import Manifest, new_run_id
from results.contract.store import Store
from results.criteria import Judgement, judge
from results.criteria.judgement import sound
from testbed.experiments.runner import run_on
from testbed.runner.beside import forget, keep, medians
from testbed.runner.canary import look
from testbed.runner.environment import environment
from testbed.runner.execute import Measured
from testbed.runner.grounds import Grounds
from testbed.runner.series import Canary, Series
from testbed.runner.variant import Resolved, Variant, resolve

Progress = Callable[[str], None]


class Slots(AbstractContextManager["Slots"]):
    """Makes the runs of one series; leaves no testbed behind."""

    def __init__(self, series: Series, store: Store, progress: Progress) -> None:
        self._resolved: Mapping[str, Resolved] = {each.label: resolve(each) for each in series.variants}
        self._store = store
        self._progress = progress
        self._grounds = Grounds(series.id[-6:], progress)
        self._read: Mapping[str, float] = {}
        """The newest reading of the canaries."""
        self._last: str | None = None
        """The run that was made since."""

    def __exit__(self, *_error: object) -> None:
        self._grounds.close()

    def new_run_id(self, variant: Variant) -> str:
        """See `Executor.new_run_id`."""
        return new_run_id(variant.experiment, datetime.now(UTC), secrets.token_hex(3))

    def canary(self, variant: Variant) -> Canary:
        """See `Executor.canary`."""
        testbed = self._grounds.ready(self._resolved[variant.label])
        before, reading = self._read, look(testbed)
        self._read = reading
        if self._last is not None:
            keep(self._store, self._last, medians([before, reading]), self._progress)
            self._last = None
        found = environment(testbed, reading["nic"])
        return Canary(reading, found.key, found.fields)

    def run(self, variant: Variant, run_id: str) -> Measured:
        """See `Executor.run`."""
        wanted = self._resolved[variant.label]
        testbed = self._grounds.start(wanted)
        # Before the run is in the store: who judges it at once finds what is known of the machine by then.
        keep(self._store, run_id, self._read, self._progress)
        try:
            judgement = run_on(
                testbed, wanted.experiment, wanted.settings, variant.profile, run_id, self._store, self._progress
            )
        except BaseException:
            # In whatever state the run left it, the next one shall not begin there.
            self._grounds.drop(wanted.ground)
            forget(self._store, run_id)
            raise
        self._last = run_id
        return measured(self._store.manifest(run_id), judgement)

    def committed(self, run_id: str) -> Measured | None:
        """See `Executor.committed`."""
        if run_id not in self._store.runs():
            return None
        run = self._store.manifest(run_id)
        return measured(run, judge(run, self._store.samples(run_id), self._store.events(run_id)))


def measured(run: Manifest, judgement: Judgement) -> Measured:
    """What the journal keeps of a run. Pure."""
    verdicts: dict[str, set[str]] = {}
    for each in judgement.criteria:
        verdicts.setdefault(_where(each.name, each.host, each.direction), set()).add(each.verdict)
    failed = tuple(name for name, found in verdicts.items() if "fail" in found)
    kept = tuple(name for name, found in verdicts.items() if found == {"pass"})
    software = run.versions.jars_digest or ""
    values = values_of(run, judgement.measures)
    return Measured(judgement.verdict, values, failed, software, kept, sound(judgement))


def _where(*parts: str | None) -> str:
    return " ".join(part for part in parts if part)
