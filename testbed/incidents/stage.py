"""One replay on a testbed: what is there before, who watches, who acts, and everything put back after."""

from results.contract.logs import HostLog
from results.contract.manifest import NicMeasurement
from results.contract.schema import Records
from testbed.errors import TestbedError
from testbed.hosts.host import NamespaceShell
from testbed.incidents.engine import Played, RealClock, play
from testbed.incidents.ground import allowed
from testbed.incidents.load import OpenLoop, Written
from testbed.incidents.model import Incident
from testbed.incidents.operator import ClusterOperator
from testbed.incidents.throttling import OperatorThrottle, lists_for, rates_on
from testbed.incidents.timeline import Due
from testbed.incidents.watch import LOOK_S, Watch, quota_look, uplink_look
from testbed.kafka.admin import Admin
from testbed.network.fabric import shaped_devices
from testbed.network.measure import settled
from testbed.probes.brokers import nic_measurements, watch_brokers, watch_stores
from testbed.probes.logwatch import LogWatch
from testbed.probes.machine import cpu_probe
from testbed.probes.recorder import Poller, Recorder, now_us
from testbed.provision.testbed import Progress, Testbed
from testbed.signals import TerminationGuard, deferred_signals
from testbed.throttle.journal import JournalFolder
from testbed.workload.preload import audit, preload
from testbed.workload.records import Fill, Recipe

LOOK_TIMEOUT_S = 3.0


class Stage:
    """`play` once; afterwards `started_us`, `ended_us`, `records`, `nics` and `logs` say what happened meanwhile."""

    def __init__(self, testbed: Testbed, incident: Incident, seed: int, recorder: Recorder, progress: Progress) -> None:
        self._testbed, self._incident, self._seed = testbed, incident, seed
        self._recorder, self._progress = recorder, progress
        self._ids = {host.name: host.node_id for host in testbed.topology.brokers if host.node_id is not None}
        self._topics = tuple(topic.name for topic in incident.state.topics)
        self._fills = [
            Fill(t.name, range(len(t.placement)), t.records, Recipe(t.record_bytes, seed + number))
            for number, t in enumerate(incident.state.topics)
            if t.records
        ]
        self._pollers: list[Poller] = []
        self.started_us = self.ended_us = 0
        self.records: Records | None = None
        self.nics: tuple[NicMeasurement, ...] = ()
        self.logs: tuple[HostLog, ...] | None = None

    def play(self) -> Played:
        """Prepare, play, put back, read back. Raises `TestbedError`; the testbed is put back all the same."""
        testbed = self._testbed
        logs = LogWatch(testbed, allowed(self._incident))
        logs.start()
        with TerminationGuard(), testbed.admin() as admin, testbed.admin(timeout_s=LOOK_TIMEOUT_S) as looking:
            watch = Watch(looking, self._topics, {i: h for h, i in self._ids.items()}, self._recorder)
            throttle = OperatorThrottle(admin, JournalFolder(), self._recorder.event)
            operator = ClusterOperator(testbed, admin, self._topics, watch, throttle, self._recorder.event)
            loop = self._open_loop()
            made: list[str] = []
            try:
                played, written = self._played(admin, looking, throttle, operator, watch, loop, made)
                self._recorder.wait_for_all()
                self._end_watching()
                self._read_back(written)
                self.logs = logs.logs()
            finally:
                # One that was made for this replay goes as a whole.
                for topic in [] if testbed.state.ephemeral else made:
                    admin.delete_topic(topic)
        return played

    def _played(
        self,
        admin: Admin,
        looking: Admin,
        throttle: OperatorThrottle,
        operator: ClusterOperator,
        watch: Watch,
        loop: OpenLoop | None,
        made: list[str],
    ) -> tuple[Played, Written | None]:
        incident, written = self._incident, None
        try:
            self._prepare(admin, throttle, made)
            self.nics = self._measured_nics()
            self._watch(looking, watch)
            if loop is not None:
                loop.start()
            self._progress(f"playing {incident.name}, the {incident.practice} practice: {incident.practice_summary}")
            played = self._timeline(operator, watch)
            throttle.look(self._ids.values(), self._topics)
        finally:
            with deferred_signals():
                self._progress("healing faults, restoring the throttle")
                problems = operator.put_back()
                if loop is not None:
                    written = loop.stop()
        if problems:
            raise TestbedError("the testbed is not as it was before the replay:\n  " + "\n  ".join(problems))
        return played, written

    def _open_loop(self) -> OpenLoop | None:
        load = self._incident.load
        if load is None:
            return None
        partitions = len(self._incident.topic(load.topic).placement)
        return OpenLoop(self._testbed.bootstrap, load, partitions, self._seed + 1000, self._recorder.add)

    def _prepare(self, admin: Admin, throttle: OperatorThrottle, made: list[str]) -> None:
        with self._recorder.step("prepare"):
            for topic in self._incident.state.topics:
                placement = {p: [self._ids[h] for h in hosts] for p, hosts in enumerate(topic.placement)}
                admin.create_topic(topic.name, placement, topic.configs)
                made.append(topic.name)
            if self._fills:
                self._progress(f"preloading {sum(fill.bytes for fill in self._fills) / 1e6:.0f} MB")
                preload(self._testbed.bootstrap, self._fills)
            initial = self._incident.state.throttle
            if initial is not None:
                wanted = lists_for(initial.topics, {}) | rates_on(list(self._ids.values()), initial.rate_bytes_per_s)
                throttle.set(wanted)
                throttle.wait_in_force(wanted, list(self._ids.values()), 30.0)

    def _measured_nics(self) -> tuple[NicMeasurement, ...]:
        """Just before, as of an experiment; where that fails nothing is measured, and no rate judged."""
        self._progress("measuring the NICs, 2 s each way")
        with self._recorder.step("measure NICs"):
            try:
                return nic_measurements(self._testbed.topology, settled(self._testbed.nics))
            except TestbedError as error:
                self._recorder.event("note", "NICs were not measured", {"error": str(error)})
                return ()

    def _watch(self, looking: Admin, watch: Watch) -> None:
        testbed, recorder = self._testbed, self._recorder
        watch_brokers(recorder, testbed.topology, testbed.hosts, self._topics)
        watch_stores(recorder, testbed.topology, testbed.hosts)
        for host, broker in self._ids.items():
            self._pollers.append(recorder.poll(f"quota of {host}", 1.0, quota_look(looking, host, broker)))
        self._pollers.append(recorder.poll("cpu", 1.0, cpu_probe()))
        self._pollers.append(recorder.poll("replicas", LOOK_S, watch.look))
        if testbed.topology.uplinks:
            fabric, _pids = testbed.pids()
            at_ends = [each.device for each in shaped_devices(testbed.topology) if each.what.startswith("rack ")]
            devices = dict(zip(testbed.topology.uplinks, zip(at_ends[::2], at_ends[1::2], strict=True), strict=True))
            look = uplink_look(NamespaceShell("fabric", fabric), devices)
            self._pollers.append(recorder.poll("uplinks", 1.0, look))
        recorder.wait_for_all()

    def _end_watching(self) -> None:
        for poller in self._pollers:
            poller.stop()
        self._recorder.stop()

    def _timeline(self, operator: ClusterOperator, watch: Watch) -> Played:
        recorder = self._recorder

        def perform(due: Due, actual_s: float) -> str | None:
            entry = due.entry
            said = "; ".join(map(str, entry.actions))
            detail = {
                "planned_s": round(due.planned_s, 4),
                "actual_s": round(actual_s, 4),
                "trigger": str(entry.trigger),
                "do": [str(action) for action in entry.actions],
                "expect": [str(expectation) for expectation in entry.expectations],
            }
            recorder.event("incident.entry", entry.name, detail)
            if entry.actions:
                self._progress(f"+{actual_s:.1f} s  {entry.name}: {said}")
            for action in entry.actions:
                try:
                    action.perform(operator)
                except TestbedError as error:
                    recorder.event("note", f"{entry.name}: {action} failed", {"error": str(error)})
                    return f"{action}: {error}"
            return None

        clock = RealClock()
        self.started_us = now_us()
        recorder.event("incident.started", self._incident.name)
        played = play(self._incident, clock, watch.newest, perform, watch.moving)
        self.ended_us = now_us()
        recorder.event("incident.ended", self._incident.name)
        return played

    def _read_back(self, written: Written | None) -> None:
        records = written.records if written is not None else ()
        if written is not None:
            detail = {
                "sent": written.sent,
                "acknowledged": written.acknowledged,
                "error": written.error,
                "held": written.held,
            }
            self._recorder.event("load.done", self._incident.load.topic if self._incident.load else "", detail)
        if not self._fills and not records:
            return
        self._progress("reading every record back")
        # Of records that were never acknowledged nobody promised anything: they are not expected.
        found = audit(self._testbed.bootstrap, self._fills, records)
        self.records = Records(found.expected, found.found, found.lost, found.duplicated, found.corrupt)
