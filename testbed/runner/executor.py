"""One run of a campaign on a testbed: its start, its stop at the time limit, and its entry in the journal."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager

from results.compare.compared_measures import values_of
from results.compare.log_lines import line_kinds
from results.contract.manifest import Manifest
from results.contract.schema import Sample, events_table, samples_table
from results.contract.store import Store
from results.criteria import Judgement, judge
from results.criteria.judgement import has_ended, sound
from results.criteria.quantities import CPU_QUOTA, percent
from results.criteria.sample_series import RunSeries
from results.criteria.unfit import BUSY_HIGHEST, STEAL_HIGHEST, mostly_unfit
from testbed.errors import KafkaStuck, TestbedError
from testbed.experiments.experiment_run import Progress, run_on
from testbed.paths import data_dir
from testbed.probes.machine import fingerprint, machine_probe, wait_calm
from testbed.probes.recorder import Recorder
from testbed.provision.liveness import why_not_whole
from testbed.provision.testbed import Testbed
from testbed.runner.campaign import Campaign
from testbed.runner.canary import discard_canaries, environment, environment_key, keep_canaries, look, medians
from testbed.runner.journal import CanaryReading, RunBegun, RunDone
from testbed.runner.testbed_pool import TestbedPool
from testbed.runner.time_limit import STACKS, TimeLimitError, bounded
from testbed.runner.variant import Resolved, Variant, resolve
from testbed.wait import WaitTimeout

CALM_LOOK_S, CALM_S = 3.0, 60.0
"""Over how long the machine must be calm before a late Kafka is started once more, and the longest wait for that."""


class TestbedExecutor(AbstractContextManager["TestbedExecutor"]):
    """The executor of one campaign on testbeds; it removes its testbeds at the end."""

    __test__ = False  # pytest must not collect this class, although its name starts with "Test"

    def __init__(self, campaign: Campaign, store: Store, progress: Progress) -> None:
        self._resolved: Mapping[str, Resolved] = {each.label: resolve(each) for each in campaign.variants}
        self._store = store
        self._progress = progress
        self._evidence = data_dir() / "campaigns" / campaign.id / "evidence"
        self._pool = TestbedPool(campaign.id[-6:], progress, campaign.builds)
        self._read: Mapping[str, float] = {}
        """The newest reading of the canaries."""
        self._last: str | None = None
        """The id of the run that was made since that reading."""

    def __exit__(self, *_error: object) -> None:
        self._pool.close()

    def canary(self, variant: Variant) -> CanaryReading:
        """See `Executor.canary`."""
        testbed = self._started(self._resolved[variant.label], self._pool.ready)
        before, reading = self._read, look(testbed)
        self._read = reading
        if self._last is not None:
            keep_canaries(self._store, self._last, medians([before, reading]), self._progress)
            self._last = None
        fields = environment(testbed, reading["nic"])
        return CanaryReading(reading, environment_key(fields), fields)

    def run(self, variant: Variant, begun: RunBegun) -> RunDone:
        """See `Executor.run`."""
        wanted, run_id = self._resolved[variant.label], begun.run_id
        testbed = self._started(wanted, self._pool.start)
        # Stored before the run, so that a judgement of the run always has these readings.
        keep_canaries(self._store, run_id, self._read, self._progress)
        recorder = Recorder()
        try:
            with bounded(f"run {run_id}", variant.limit_s, self._evidence / run_id, recorder, lambda: testbed):
                judgement = run_on(
                    testbed,
                    wanted.experiment,
                    wanted.settings,
                    variant.profile,
                    run_id,
                    self._store,
                    self._progress,
                    recorder=recorder,
                )
        except BaseException as error:
            explained = _not_kafkas(testbed, recorder) if isinstance(error, TimeLimitError) else ""
            # The run left the testbed in an unknown state; the next run must not use it.
            self._pool.drop(wanted.topology_digest)
            discard_canaries(self._store, run_id)
            if explained:
                raise TestbedError(f"{error}; this explains it: {explained}") from error
            raise
        self._last = run_id
        return measured(begun.slot, self._store.manifest(run_id), judgement)

    def _started(self, wanted: Resolved, start: Callable[[Resolved], Testbed]) -> Testbed:
        """Return the testbed of `start`. Start Kafka once more where it was late on an unfit machine.

        Raise the errors of `start`, and a `TestbedError` where the machine stays busy without any Kafka.
        """
        load = machine_probe()
        try:
            return start(wanted)
        except KafkaStuck as error:
            unfit = _unfit(load()) if isinstance(error.__cause__, WaitTimeout) else ""
            if not unfit:
                raise
            self._progress(f"{error}; {unfit}: starting Kafka once more")
            if not wait_calm(BUSY_HIGHEST, CALM_LOOK_S, CALM_S):  # no Kafka of the campaign runs now
                still = f"without Kafka it was more than {percent(BUSY_HIGHEST)} busy for {CALM_S:g} s"
                raise TestbedError(f"{error}; this explains it: {unfit}, and {still}") from error
        self._pool.ready(wanted)
        return start(wanted)

    def committed(self, begun: RunBegun) -> RunDone | None:
        """See `Executor.committed`."""
        run_id = begun.run_id
        if run_id not in self._store.runs():
            stacks = self._evidence / run_id / STACKS
            if stacks.is_file() and stacks.stat().st_size:  # written at the limit; a run that is done removes the file
                raise KafkaStuck(
                    f"run {run_id} was not done at its time limit, and its clean-up did not end either; {stacks} has "
                    "the stacks of its threads"
                )
            return None
        run = self._store.manifest(run_id)
        return measured(begun.slot, run, judge(run, self._store.samples(run_id), self._store.events(run_id)))


def measured(slot: int, run: Manifest, judgement: Judgement) -> RunDone:
    """Return the values of a slot's run that the journal keeps. Pure."""
    verdicts: dict[str, set[str]] = {}
    for each in judgement.criteria:
        verdicts.setdefault(f"{each.name} {each.where}".rstrip(), set()).add(each.verdict)
    return RunDone(
        slot,
        run.run_id,
        judgement.verdict,
        values_of(run, judgement.measures),
        failed=tuple(name for name, found in verdicts.items() if "fail" in found),
        software=run.versions.jars_digest or "",
        kept=tuple(name for name, found in verdicts.items() if found == {"pass"}),
        sound=sound(judgement),
        logged=line_kinds(run.facts.logs),
        ended=has_ended(judgement),
    )


def _unfit(load: Iterable[Sample]) -> str:
    """Return why the machine was unfit on average over the time of these samples; empty where it was fit."""
    seen = {each.metric: each.value for each in load}
    busy, steal = max(seen.get("cpu.busy", 0.0), seen.get(CPU_QUOTA, 0.0)), seen.get("cpu.steal", 0.0)
    if steal > STEAL_HIGHEST:
        return f"{percent(steal)} of the CPU was stolen"
    return f"the machine was {percent(busy)} busy" if busy > BUSY_HIGHEST else ""


def _not_kafkas(testbed: Testbed, recorder: Recorder) -> str:
    """Return what explains a stopped run: the engine, ended containers, or an unfit machine; empty for nothing."""
    try:
        ended = why_not_whole(testbed.engine, testbed.state)
    except TestbedError as error:
        return str(error)
    series = RunSeries(samples_table(recorder.samples()), events_table(recorder.events()))
    return ended or next((each.why for each in mostly_unfit(series, fingerprint()["cores"])), "")
