"""A cluster in memory on which the executor takes the steps of KIP-455's scenarios."""

from types import SimpleNamespace

from testbed.experiments.kip455_executor import Kip455Executor
from testbed.probes.recorder import Recorder

TOPIC = "kip455-abc123"


class KilledBrokers:
    """The faults of the cluster; they are healed in the reverse order."""

    def __init__(self, kill, live):
        self.kill, self.live, self.down = kill, live, []

    def add(self, fault):
        self.down.append(int(fault.host.removeprefix("b")))
        self.kill(self.down[-1])
        return len(self.down)

    def clear(self, number):
        assert number == len(self.down)
        self.live.add(self.down.pop())


def take(scenario, admin, kill, live, *, settled=False):
    """Return the records of the steps, and the recorder. `kill` kills one of the `live` brokers 1 to 6.

    With `settled` all is undone, and the logs are awaited, before the recorder stops, as in a run.
    """
    recorder = Recorder()
    testbed = SimpleNamespace(
        topology=SimpleNamespace(brokers=[SimpleNamespace(name=f"b{i}", node_id=i) for i in range(1, 7)]),
        admin=lambda **_named: admin,
        faults=KilledBrokers(kill, live),
        bootstrap=("fake:9092",),
    )
    context = SimpleNamespace(testbed=testbed, recorder=recorder, progress=lambda _text: None, run_id="x-abc123")
    with Kip455Executor(context, scenario) as executor:
        executor.prepare()
        records = executor.walk()
        if settled:
            executor.settle()
        recorder.stop()
    return records, recorder
