"""ducktape tests of a suite: a method for each experiment, generated from the catalogue, and its verdict."""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar, TypeVar

from ducktests.framework import DucktapeContext, Failed, Inconclusive, Test, parametrized, results_folder
from ducktests.parent_death import die_with_parent
from ducktests.services import KafkaService
from results.contract.store import Store
from testbed.errors import TestbedError
from testbed.experiments.reports import default_store
from testbed.incidents.library import find_experiment_or_incident
from testbed.runner.case import FILE, CaseOutcome, CaseRun
from testbed.runner.ducktape import print_progress
from testbed.runner.variant import of_case, resolve
from testbed.suites.suite import Case, Suite, chosen_cases, chosen_profile, find_suite
from testbed.topology.find import find

_TestClass = TypeVar("_TestClass", bound="type[ScenarioTest]")


def scenario_tests(test_class: _TestClass) -> _TestClass:
    """Return a test class with a method for each experiment of its suite, with the chosen profile's cases.

    The method of the experiment `kip73-two-node` in the suite `kip73` is `test_two_node`.
    """
    suite = find_suite(test_class.suite)
    chosen = chosen_cases(suite)
    for name in dict.fromkeys(case.experiment for cases in suite.profiles.values() for case in cases):
        values = [({"case": case.name}, *_nodes(case)) for case in chosen if case.experiment == name]
        method = parametrized(values)(_test_method(test_class, name))
        setattr(test_class, method.__name__, method)
    return test_class


def _test_method(test_class: "type[ScenarioTest]", experiment: str) -> Callable[..., None]:
    def run_case(self: ScenarioTest, case: str) -> None:
        self.check(case)

    run_case.__name__ = "test_" + experiment.removeprefix(f"{test_class.suite}-").replace("-", "_")
    run_case.__qualname__ = f"{test_class.__qualname__}.{run_case.__name__}"
    run_case.__module__ = test_class.__module__
    run_case.__doc__ = find_experiment_or_incident(experiment).summary
    return run_case


@functools.cache
def _nodes(case: Case) -> tuple[int, str]:
    """Return the number of hosts of a case and their topology. Raise `UsageError` when the case cannot run."""
    topology = resolve(of_case(case, chosen_profile())).topology.name
    return len(find(topology).hosts), topology


class ScenarioTest(Test):
    """The base of a suite's tests: it runs cases of one suite."""

    suite: ClassVar[str]
    __test__ = False

    def __init__(self, test_context: DucktapeContext) -> None:
        super().__init__(test_context)
        # A killed ducktape process cannot end its tests.
        die_with_parent()

    def check(self, case: str) -> None:
        """Run a case. Raise `Failed` or `Inconclusive` for that verdict, or the error that prevented a verdict."""
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
            print_progress(f"case {case}: {outcome.ending}{f': {outcome.why}' if outcome.why else ''}")
            if not run.disturbed or len(before) == kafka.options.again:
                break
            before = (*before, f"{outcome.run_id}: {outcome.why}")
        _assert_passed(outcome)

    def _once(self, run: CaseRun, kafka: KafkaService) -> CaseOutcome:
        """Run the case on an emptied testbed and return its outcome. Raise the error that prevented a verdict."""
        print_progress(f"case {run.case.name}: {run.case.experiment} {' '.join(run.case.settings)}")
        try:
            with run.recorded():
                testbed = run.testbed = kafka.testbed
                run.resolved.experiment.fits(testbed.topology, run.resolved.settings)
                kafka.start(run.resolved.overlay)
                outcome = run.run(testbed, self._store(kafka), print_progress)
            kafka.restore_hosts()  # the next run of this topology needs its brokers, also a repetition of this one
            return outcome
        except BaseException:
            # The state of the testbed is unknown: the next test must not start on it.
            self._give_up(kafka)
            raise

    def _store(self, kafka: KafkaService) -> Store:
        given: Mapping[str, object] = self.test_context.globals or {}
        return Store.open(str(given.get("store") or kafka.options.store or default_store()))

    @staticmethod
    def _give_up(kafka: KafkaService) -> None:
        if kafka.problem is not None:
            return
        try:
            if kafka.kept:
                kafka.restore_hosts()
                return
            kafka.testbed.down()
            kafka.problem = "its testbed was removed after a case that was not done"
        except TestbedError as error:
            what = "as before" if kafka.kept else "removed"
            print_progress(f"the testbed of a case that was not done is not {what}: {error}")


def _assert_passed(outcome: CaseOutcome) -> None:
    if outcome.verdict == "fail":
        raise Failed(f"{outcome.run_id}: {outcome.why}")
    if outcome.verdict != "pass":
        raise Inconclusive(f"{outcome.run_id}: {outcome.why}")
