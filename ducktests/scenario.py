"""A test that runs one case of a suite, and what its verdict means to ducktape."""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path

from ducktests.dying import die_with_parent
from ducktests.framework import Context, Test, parametrized, results_folder
from ducktests.services import KafkaService
from ducktests.verdicts import Failed, Inconclusive
from results.contract.store import Store
from testbed.errors import TestbedError
from testbed.experiments.reports import default_store
from testbed.suites.case import CaseRun
from testbed.suites.outcome import FILE, CaseOutcome
from testbed.suites.suite import Case, Suite, chosen_cases, chosen_profile, find_suite
from testbed.suites.telling import tell
from testbed.topology.find import find


def scenario(suite: str, *experiments: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a test for each case of `suite`, in the chosen profile, that is one of `experiments`."""
    cases = [case for case in chosen_cases(find_suite(suite)) if case.experiment in experiments]
    return parametrized([({"case": case.name}, *_nodes(case)) for case in cases])


@functools.cache
def _nodes(case: Case) -> tuple[int, str]:
    """How many hosts a case has, and of which topology. Raises `UsageError` for a case that cannot be run."""
    topology = case.resolve(chosen_profile()).topology.name
    return len(find(topology).hosts), topology


class ScenarioTest(Test):
    """Runs cases of the suite that `suite` names."""

    suite: str
    __test__ = False

    def __init__(self, test_context: Context) -> None:
        super().__init__(test_context)
        # A ducktape that is killed cannot end its tests.
        die_with_parent()

    def check(self, case: str) -> None:
        """Run a case, and raise unless its verdict is pass: `Failed`, `Inconclusive`, or why there is none."""
        suite: Suite = find_suite(self.suite)
        chosen = suite.cases(chosen_profile(), [case])[0]
        hosts, _topology = _nodes(chosen)
        kafka = KafkaService(self.test_context, hosts)
        folder = Path(results_folder(self.test_context))
        if (folder / FILE).exists():
            raise Failed(f"case {case} was run already and did not pass: it is not repeated (--deflake) until it does")
        before: tuple[str, ...] = ()
        while True:
            run = CaseRun(chosen, chosen_profile(), kafka.options.kafka, folder, before)
            outcome = self._once(run, kafka)
            tell(f"case {case}: {outcome.ending}{f': {outcome.why}' if outcome.why else ''}")
            if not run.disturbed or len(before) == kafka.options.again:
                break
            before = (*before, f"{outcome.run_id}: {outcome.why}")
        _assert_passed(outcome)

    def _once(self, run: CaseRun, kafka: KafkaService) -> CaseOutcome:
        """Run it to its verdict on a testbed that is as new. Raises what became of it when there is none."""
        tell(f"case {run.case.name}: {run.case.experiment} {' '.join(run.case.settings)}")
        try:
            with run.recorded():
                testbed = run.testbed = kafka.testbed
                run.resolved.experiment.fits(testbed.topology, run.resolved.settings)
                kafka.start(run.resolved.overlay)
                return run.run(testbed, self._store(kafka), tell)
        except BaseException:
            # In whatever state it is now, the next test shall not begin there.
            self._give_up(kafka)
            raise

    def _store(self, kafka: KafkaService) -> Store:
        given: Mapping[str, object] = self.test_context.globals or {}
        return Store.open(str(given.get("store") or kafka.options.store or default_store()))

    @staticmethod
    def _give_up(kafka: KafkaService) -> None:
        if kafka.problem is None and not kafka.kept:
            try:
                kafka.testbed.down()
                kafka.problem = "its testbed was removed after a case that was not done"
            except TestbedError as error:
                tell(f"the testbed of a case that was not done could not be removed: {error}")


def _assert_passed(outcome: CaseOutcome) -> None:
    if outcome.verdict == "fail":
        raise Failed(f"{outcome.run_id}: {outcome.why}")
    if outcome.verdict != "pass":
        raise Inconclusive(f"{outcome.run_id}: {outcome.why}")
