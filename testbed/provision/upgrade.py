"""A rolling upgrade: each node in turn is stopped, started with another Kafka, and waited for.

Version numbers decide nothing: the cluster's finalized features decide whether a release may join.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from testbed.errors import TestbedError, UsageError
from testbed.kafka.connection import Connection
from testbed.kafka.errors import KafkaError
from testbed.kafka.health import Health, health
from testbed.provision.kafka_nodes import configure, require_breakable, silence
from testbed.provision.membership import changing
from testbed.provision.software import KafkaSoftware
from testbed.provision.testbed import Testbed
from testbed.software.format import METADATA
from testbed.software.jvm import home
from testbed.topology.host import DeclaredHost
from testbed.topology.model import Topology
from testbed.wait import wait_for

STOP_TIMEOUT_S = 60.0
WHOLE_TIMEOUT_S = 120.0
FEATURES_TIMEOUT_S = 30.0
_INTERVAL_S = 0.2


@dataclass(frozen=True, slots=True)
class NodeUpgrade:
    """One node's upgrade. `seconds` counts from its stop until the cluster was whole again."""

    host: str
    before: str
    after: str
    seconds: float


@dataclass(frozen=True, slots=True)
class UpgradeResult:
    """An upgrade's result: the nodes in order, and the cluster's finalized features afterwards."""

    steps: tuple[NodeUpgrade, ...]
    features: Mapping[str, int]


def rolling_upgrade(
    testbed: Testbed,
    to: str,
    hosts: Sequence[str] | None = None,
    finalize: bool = False,
    *,
    progress: Callable[[str], None] = lambda _text: None,
    timeout_s: float = WHOLE_TIMEOUT_S,
) -> UpgradeResult:
    """Upgrade `hosts` (None: all that run Kafka) to the Kafka that `to` names, one after the other; return the result.

    Brokers come first, then controllers, the active one last. Each node is shut down in a controlled way and started
    with the other Kafka. Within `timeout_s` it must be unfenced with nothing under-replicated; then the next follows.
    A node that already runs the wanted Kafka is skipped, so that a repeated call finishes an interrupted upgrade.
    Partitions that were led by their preferred replica are led by it afterwards. With `finalize`, the features of the
    wanted release are finalized at the end (this cannot be undone).

    Raise `UsageError` for unknown hosts. Raise `TestbedError` when the release cannot join the cluster, the cluster
    is not whole before the upgrade, or when a node does not come back (the error has the end of its log).
    """
    _wanted(testbed, hosts)
    with changing(testbed):
        wanted = _wanted(testbed, hosts)
        progress(f"preparing {to}")
        target = testbed.software.kafka(to)
        testbed.copy_software(target)
        _check(testbed, target, [host.name for host in wanted], finalize)
        testbed.state = replace(testbed.state, digests={**testbed.state.digests, target.version: target.digest})
        for host in wanted:
            if testbed.node(host.name).pid() is None:
                # An interrupted upgrade left it down, or it did not come back: the cluster waits for it.
                progress(f"{host.name}: runs nothing, is started with Kafka {target.version}")
                _start(testbed, host, target)
        led = _wait_whole(testbed, timeout_s, "before the upgrade").led_as_preferred
        waiting = [host for host in wanted if testbed.state.kafka[host.name] != target.version]
        progress(f"to Kafka {target.version}: {', '.join(host.name for host in waiting) or 'nothing to do'}")
        steps = []
        while waiting:
            host = next_host(waiting, _observe(testbed).controller)
            waiting.remove(host)
            steps.append(_upgrade(testbed, host, target, timeout_s, progress))
            progress(
                f"{host.name}: {steps[-1].before} → {steps[-1].after}, whole again after {steps[-1].seconds:.1f} s"
            )
        with testbed.admin() as admin:
            admin.elect_preferred(sorted(led - _observe(testbed).led_as_preferred))
        if finalize:
            finalize_features(testbed.bootstrap, target.features)
            progress(f"features finalized: {_as_text(target.features)}")
        with testbed.admin() as admin:
            return UpgradeResult(tuple(steps), admin.features())


def next_host(waiting: Sequence[DeclaredHost], active_controller: int | None) -> DeclaredHost:
    """Return the next of the waiting hosts: brokers, then controllers, the active one last."""
    return min(waiting, key=lambda host: (host.is_controller, host.node_id == active_controller))


def quorum_without(topology: Topology, host: DeclaredHost) -> bool:
    """Return whether the other controllers are a majority without this host."""
    others = [controller for controller in topology.controllers if controller.name != host.name]
    return 2 * len(others) > len(topology.controllers)


def cannot_join(finalized: Mapping[str, int], features: Mapping[str, int]) -> str | None:
    """Return why a release with these `features` cannot join a cluster with those finalized; None when it can."""
    above = {name: level for name, level in finalized.items() if level > features.get(name, 0)}
    if not above:
        return None
    known = ", ".join(f"{name}={features.get(name, 0)}" for name in sorted(above))
    return f"the cluster has finalized {_as_text(above)}, the release knows {known}"


def finalize_features(bootstrap: Sequence[str], features: Mapping[str, int]) -> None:
    """Raise the cluster's finalized features to these levels in one request, and wait until they are in force.

    Levels that the cluster already has are skipped; no level is lowered. Raise `KafkaError` with the refused features.
    """
    with closing(Connection(bootstrap, FEATURES_TIMEOUT_S, "testbed-upgrade")) as connection:

        def missing() -> dict[str, int]:
            answer = connection.call("describe the features", connection.client.describe_features)
            have = {name: each["finalized"][1] for name, each in answer.items() if "finalized" in each}
            return {name: level for name, level in features.items() if have.get(name, 0) < level}

        raised = missing()
        if not raised:
            return
        answers = connection.call("update the features", connection.client.update_features, raised)
        refused = {name: answer for name, answer in answers.items() if answer != "OK"}
        if refused:
            reasons = "; ".join(f"{name}={raised[name]}: {why}" for name, why in sorted(refused.items()))
            raise KafkaError("update the features", "FEATURE_UPDATE_FAILED", reasons)
        wait_for(
            missing,
            lambda left: not left,
            FEATURES_TIMEOUT_S,
            _INTERVAL_S,
            f"features {_as_text(raised)} to be in force",
        )


def _wanted(testbed: Testbed, hosts: Sequence[str] | None) -> list[DeclaredHost]:
    kafka = [host for host in testbed.topology.hosts if host.name in testbed.state.kafka]
    if hosts is None:
        return kafka
    unknown = [name for name in hosts if name not in testbed.state.kafka]
    if unknown or not hosts:
        raise UsageError(
            f"{', '.join(unknown) or 'no host'} cannot be upgraded; hosts of {testbed.name} that run Kafka: "
            f"{', '.join(testbed.state.kafka)}"
        )
    return [host for host in kafka if host.name in hosts]


def _check(testbed: Testbed, target: KafkaSoftware, hosts: Sequence[str], finalize: bool) -> None:
    """Raise an error before any node is stopped when the upgrade cannot work."""
    if testbed.topology.exists:
        raise TestbedError(
            f"{testbed.name} is on machines that exist, which have one release: `testbed down {testbed.name}`, "
            f"then `testbed up` with --kafka {target.version}"
        )
    with testbed.admin() as admin:
        wrong = cannot_join(admin.features(), target.features)
    if wrong:
        raise TestbedError(
            f"{testbed.name} cannot be brought to Kafka {target.version}: {wrong}. A cluster cannot go back behind "
            "its features; start again with `testbed down` and `testbed up`"
        )
    others = {version for host, version in testbed.state.kafka.items() if host not in hosts} - {target.version}
    lacking = sorted(each for each in others if cannot_join(target.features, testbed.software.kafka(each).features))
    if finalize and lacking:
        stay = [host for host, version in testbed.state.kafka.items() if host not in hosts and version in lacking]
        raise TestbedError(
            f"the features of Kafka {target.version} cannot be finalized while {', '.join(stay)} stay at "
            f"{', '.join(lacking)}: upgrade them, too, or leave out --finalize"
        )
    broken = {host: options for host, options in testbed.state.defects.items() if host in hosts}
    require_breakable(testbed.software, dict.fromkeys(broken, target.version), broken)
    for host in hosts:
        found = testbed.hosts[host].run(["test", "-d", f"{home(target.release)}/libs"], check=False)
        if found.exit_status != 0:
            raise TestbedError(
                f"{host} does not see Kafka {target.version} at {home(target.release)}: {testbed.name} was brought up "
                "with another cache folder than this command uses (XDG_CACHE_HOME); use that one, or bring it up again"
            )


def _start(testbed: Testbed, host: DeclaredHost, target: KafkaSoftware) -> None:
    # Recorded before the start: from now on any restart of this node uses the new Kafka.
    testbed.record(replace(testbed.state, kafka={**testbed.state.kafka, host.name: target.version}))
    configure(testbed, host)
    testbed.node(host.name).start()


def _upgrade(
    testbed: Testbed, host: DeclaredHost, target: KafkaSoftware, timeout_s: float, progress: Callable[[str], None]
) -> NodeUpgrade:
    begun = time.monotonic()
    before = testbed.state.kafka[host.name]
    try:
        testbed.node(host.name).stop(timeout_s=STOP_TIMEOUT_S)
        # Without a quorum no controller can answer now, and the next leader does not know each node's progress.
        reached = _observe(testbed).high_watermark if quorum_without(testbed.topology, host) else -1
        _start(testbed, host, target)
        _wait_whole(testbed, timeout_s, f"after {host.name} was started with it", back=host, beyond=reached)
    except TestbedError as error:
        raise TestbedError(
            f"{host.name} did not come back with Kafka {target.version}: {error}\nthe end of its log:\n"
            f"{testbed.node(host.name).log_tail()}\n`testbed upgrade {testbed.name} --to {before} --hosts {host.name}` "
            "starts it with what it had before"
        ) from error
    except BaseException:  # Ctrl-C: a repeated call goes on from here
        _start_again(testbed, host, target, progress)
        raise
    return NodeUpgrade(host.name, before, target.version, time.monotonic() - begun)


def _start_again(testbed: Testbed, host: DeclaredHost, target: KafkaSoftware, progress: Callable[[str], None]) -> None:
    """Start a node whose upgrade was interrupted, with the Kafka of the state. Report why where that fails."""
    progress(f"interrupted: starting {host.name} again")
    try:
        node = testbed.node(host.name)
        if testbed.state.kafka[host.name] != target.version:
            node.kill()  # a shutdown that still lasts would end after the start
        if node.pid() is None:
            configure(testbed, host)
            node.start()
    except TestbedError as error:
        progress(f"{host.name} was not started again: {error}")


def _wait_whole(
    testbed: Testbed, timeout_s: float, when: str, *, back: DeclaredHost | None = None, beyond: int = -1
) -> Health:
    """Wait until every node serves and nothing is under-replicated.

    The restarted `back` must have followed the metadata log beyond offset `beyond`, the log's end while the
    node was down, so that earlier observations do not count. Raise an error at once when `back` died.
    """
    nodes = [host.name for host in testbed.topology.hosts if host.node_id is not None]

    def observe() -> Health | str:
        if back is not None and testbed.node(back.name).pid() is None:
            raise TestbedError("its process ended")
        if mute := silence(testbed, nodes):
            return ", ".join(f"{name}: {why}" for name, why in mute.items())
        return _seen(testbed)

    def whole(seen: Health | str) -> bool:
        return (
            isinstance(seen, Health)
            and not seen.under_replicated
            and seen.controller is not None
            and (back is None or seen.followed.get(-1 if back.node_id is None else back.node_id, -1) > beyond)
        )

    found = wait_for(observe, whole, timeout_s, _INTERVAL_S, f"{testbed.name} to be whole {when}")
    assert isinstance(found, Health)
    return found


def _observe(testbed: Testbed) -> Health:
    """Return the cluster's health; retry while a broker closes its connection."""
    what = f"{testbed.name} to answer"
    found = wait_for(lambda: _seen(testbed, 5.0), lambda seen: isinstance(seen, Health), 30.0, _INTERVAL_S, what)
    assert isinstance(found, Health)
    return found


def _seen(testbed: Testbed, timeout_s: float = 2.0) -> Health | str:
    """Return the cluster's health, or why it does not answer."""
    try:
        return health(testbed.bootstrap, timeout_s=timeout_s)
    except KafkaError as error:
        return str(error)


def _as_text(features: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={level}" for name, level in sorted(features.items(), key=lambda f: (f[0] != METADATA, f)))
