"""The replayer of drawn incidents on real brokers. It uses a testbed again while that is as declared."""

import secrets
import time
from collections.abc import Callable

import yaml

from results.contract.manifest import new_run_id
from results.contract.store import Store
from results.contract.texts import shortened
from testbed.defects.parse import by_host
from testbed.errors import TestbedError, UsageError
from testbed.experiments.experiment import Value
from testbed.experiments.experiment_run import run_on
from testbed.faults.active_faults import Faults
from testbed.faults.parse import as_text
from testbed.incidents.model import Incident
from testbed.incidents.read import loads
from testbed.incidents.replay import as_experiment
from testbed.kafka.admin import Admin
from testbed.kafka.types import is_internal
from testbed.probes.recorder import Recorder
from testbed.provision.liveness import why_not_whole
from testbed.provision.testbed import Testbed
from testbed.search.coverage import pairs
from testbed.search.database import Outcome, SearchSettings, judged
from testbed.search.draft import PROPERTIES, Draft, document
from testbed.software.source import parse_source
from testbed.throttle.configs import RATES
from testbed.topology.find import find
from testbed.topology.model import Topology
from testbed.wait import WaitTimeout, wait_for

Progress = Callable[[str], None]
SERVING_S, DELETED_S, LOOK_S = 20.0, 10.0, 0.2


def topology_of(settings: SearchSettings) -> Topology:
    """Return the topology of a search. Raise `UsageError` when there is none, or for a wrong release or defect."""
    topology = find(settings.topology)
    if settings.kafka:
        topology = topology.with_kafka_version(str(parse_source(settings.kafka)))
    by_host(settings.defects, topology)
    return topology


def incident_of(draft: Draft, brokers: int) -> Incident:
    """Return the replay that a draft stands for. Raise `FormError` when the draft is none."""
    return loads(yaml.safe_dump(document(draft, brokers), sort_keys=False), "draft.yaml").broken


class Replayer:
    """The testbed of a search, and the plays on it. A context manager: at its end the testbed is removed."""

    def __init__(self, settings: SearchSettings, store: Store, progress: Progress) -> None:
        self._settings, self._store, self._progress = settings, store, progress
        self._topology = topology_of(settings)
        self._testbed: Testbed | None = None

    def __enter__(self) -> "Replayer":
        return self

    def __exit__(self, *_error: object) -> None:
        self._drop()

    def play(self, draft: Draft, fresh: bool) -> Outcome:
        """Play an incident and return its outcome; on a testbed of its own if it is to be `fresh`.

        A replay that failed as a whole is void, also when its testbed could not be made. Raise `UsageError` when that
        will not change.
        """
        began = time.monotonic()
        incident = incident_of(draft, len(self._topology.brokers))
        try:
            testbed = self._ready(fresh)
        except UsageError:
            raise
        except TestbedError as error:
            return Outcome(round(time.monotonic() - began, 1), void=f"no testbed: {error}")
        recorder = Recorder()
        experiment = as_experiment(incident, self._settings.seed, nics=())
        run_id = new_run_id(experiment.name)
        try:
            settings: dict[str, Value] = {"variant": "broken", "seed": self._settings.seed}
            judgement = run_on(
                testbed, experiment, settings, "broken", run_id, self._store, lambda _text: None, recorder=recorder
            )
        except TestbedError as error:
            self._drop()
            return Outcome(round(time.monotonic() - began, 1), void=str(error))
        failure = self._store.manifest(run_id).failure
        failed, unknown, kept = ({}, {}, ()) if failure else judged(judgement.criteria)
        events = recorder.events()
        if failure or failed or self._left(testbed, incident):
            # What failed may have left more than the check finds.
            self._drop()
        return Outcome(
            round(time.monotonic() - began, 1),
            failed,
            unknown,
            kept,
            tuple(sorted(pairs(events, draft))),
            tuple(sorted({event.name.split(" ")[0] for event in events if event.kind == "fault.refused"})),
            failure,
            run_id,
        )

    def _ready(self, fresh: bool) -> Testbed:
        if fresh:
            self._drop()
        if self._testbed is None:
            self._testbed = Testbed.up(
                self._topology,
                name=f"search-{secrets.token_hex(3)}",
                overlay=PROPERTIES,
                defects=by_host(self._settings.defects, self._topology) or None,
                ephemeral=True,
            )
        return self._testbed

    def _left(self, testbed: Testbed, incident: Incident) -> list[str]:
        """Delete the incident's topics, and return the differences from what the topology declares."""
        try:
            with testbed.admin() as admin:
                left = differences(testbed, admin, tuple(incident.state.topics))
        except TestbedError as error:
            left = [str(error)]
        if left:
            self._progress("the testbed is made again: " + "; ".join(shortened(left, 3)))
        return left

    def _drop(self) -> None:
        testbed, self._testbed = self._testbed, None
        if testbed is not None:
            try:
                testbed.down()
            finally:
                testbed.close()


def differences(testbed: Testbed, admin: Admin, topics: tuple[str, ...]) -> list[str]:
    """Delete the topics of a replay, and return the differences of a testbed from a new one; empty when it is whole."""
    if why := why_not_whole(testbed.engine, testbed.state):
        return [why]
    testbed.wait_serving(timeout_s=SERVING_S)
    for topic in {*topics} & {*admin.topics()}:
        admin.delete_topic(topic)
    brokers = [broker.id for broker in admin.cluster().brokers]

    def remains() -> list[str]:
        found = [f"the topic {name} is left" for name in admin.topics() if not is_internal(name)]
        found += [f"{tp} is being reassigned" for tp in admin.reassignments()]
        for broker, logs in admin.log_dirs(brokers).items():
            found += [f"broker {broker} keeps {tp}" for tp in logs if not is_internal(tp.topic)]
        return found

    left: list[str] = []
    try:
        wait_for(remains, lambda found: not found, DELETED_S, LOOK_S, "the replay's topics to be deleted")
    except WaitTimeout:
        left = remains()
    for broker in brokers:
        rates = admin.broker_configs(broker, RATES).broker
        left += [f"broker {broker} has {key}" for key in rates]
    left += [f"the fault {as_text(entry.fault)} is active" for entry in Faults(testbed).list()]
    return left + testbed.shaping_differences()
