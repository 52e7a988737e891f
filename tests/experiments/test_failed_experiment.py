"""An experiment that ends early is a result: no exception of it reaches the user as a traceback."""

from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest
from pyarrow import fs

from results.contract.files import Files
from results.contract.network import NetworkRecord
from results.contract.schema import Sample
from results.contract.store import Store, StoreError
from results.criteria.judgement import OWN_ERROR
from results.criteria.restraint import ENDING
from testbed.errors import KafkaStuck, SoftwareError, TestbedError, UsageError
from testbed.experiments import experiment_run, record, reports
from testbed.experiments.experiment import ExperimentResult
from testbed.experiments.experiment_run import RunRequest, in_one_line
from testbed.probes.recorder import Recorder
from testbed.provision.containers import EngineGone
from testbed.provision.liveness import NotWhole
from testbed.wait import WaitTimeout
from tests.provision.states import make
from tests.results.synthetic import synthetic_run


class Ends:
    def __init__(self, error):
        self.error = error

    def run(self, _context):
        raise self.error


@pytest.fixture
def outcome(monkeypatch):
    monkeypatch.setattr(experiment_run, "explained", lambda *_: nullcontext())
    monkeypatch.setattr(experiment_run, "guarded", lambda *_: nullcontext())
    recorder, said = Recorder(), []
    testbed = SimpleNamespace(engine=None, state=None, topology=SimpleNamespace(objectstores=()))
    context = SimpleNamespace(testbed=testbed, recorder=recorder, progress=said.append)

    def run(what):
        return experiment_run._outcome(Ends(what) if isinstance(what, BaseException) else what, context)

    return run, recorder, said


def test_an_error_is_one_line_and_its_traceback_is_an_event(outcome):
    run, recorder, said = outcome
    _result, why = run(TestbedError("preload: nothing\ncame for 60 s"))
    assert why == "preload: nothing came for 60 s"
    assert said == ["the experiment ended early: preload: nothing came for 60 s"]
    (event,) = recorder.events()
    assert event.detail["why"] == why and "Traceback" in event.detail["trace"]


@pytest.mark.parametrize(
    ("store", "said"),
    [
        (SimpleNamespace(refusal=lambda: ""), ""),
        (SimpleNamespace(refusal=lambda: "XMinioStorageFull"), "; the object store refuses a write: XMinioStorageFull"),
        (None, "; the object store refuses a write: its credentials cannot be read"),
    ],
)
def test_a_store_that_takes_no_object_is_named_where_an_experiment_ends_early(store, said):
    """A run on brokers whose store was full said of the brokers alone that nothing came of them."""

    class Stored:
        topology = SimpleNamespace(objectstores=("s1",))

        @property
        def objectstore(self):
            if store is None:
                raise TestbedError("its credentials cannot be read")
            return store

    assert experiment_run._store_refusal(Stored()) == said


def test_what_a_run_ends_is_an_event_as_long_as_it_lasts(outcome):
    run, recorder, _said = outcome
    testbeds = []

    class Kills:
        def run(self, context):
            testbeds.append(context.testbed)
            context.testbed.ending("b2", "KILL")
            raise TestbedError("b2 does not come back")

    run(Kills())
    testbeds[0].ending("b1", "TERM")
    found = [(event.kind, event.name, event.host) for event in recorder.events()]
    assert found[0] == (ENDING, "SIGKILL", "b2")
    assert [kind for kind, _name, _host in found] == [ENDING, "note"]


def test_a_defect_of_an_experiment_names_its_type_and_place(outcome):
    run, _recorder, _said = outcome
    _result, why = run(TypeError("'>=' not supported"))
    assert why.startswith(f"{OWN_ERROR}TypeError: '>=' not supported (test_failed_experiment.py:")
    assert in_one_line(ValueError("x")) == "ValueError: x"


@pytest.mark.parametrize(
    ("error", "own"),
    [
        (KeyError("Rate"), True),
        (OSError(28, "No space left on device"), True),
        (SoftwareError("Kafka 4.3.1 is not in the cache"), True),
        (EngineGone("the container engine stopped answering"), True),
        (WaitTimeout("b1 to serve", 60, ["b1"]), False),
        (KafkaStuck("Kafka on b1 does not run"), False),
    ],
)
def test_what_no_broker_raises_is_the_testbeds_own_error(outcome, error, own):
    run, _recorder, _said = outcome
    _result, why = run(error)
    assert why.startswith(OWN_ERROR) is own


@pytest.mark.parametrize("error", [UsageError("rate: must be above 0"), KeyboardInterrupt()])
def test_what_is_no_result_is_raised(outcome, error):
    run, _recorder, _said = outcome
    with pytest.raises(type(error)):
        run(error)


def test_containers_that_ended_are_raised(outcome):
    run, _recorder, _said = outcome
    error = NotWhole.__new__(NotWhole)
    with pytest.raises(NotWhole):
        run(error)


@pytest.mark.parametrize("error", [TestbedError("no host has the log"), ValueError("not a number")])
def test_a_metadata_log_that_cannot_be_read_loses_no_run(monkeypatch, error):
    def fails(*_run):
        raise error

    monkeypatch.setattr(experiment_run, "read_changes", fails)
    said = []
    assert experiment_run._changes(None, None, Recorder(), said.append) == ()
    assert said == [f"what other clients changed is not known: {in_one_line(error)}"]


class Readings(AbstractContextManager):
    def __init__(self, _testbed):
        pass

    def __exit__(self, *_error):
        pass

    def look(self):
        return ()

    def record(self):
        return NetworkRecord(())


def test_a_run_that_cannot_be_judged_keeps_what_was_seen(monkeypatch, tmp_path):
    """A defect of a criterion ended the command with a traceback, and nothing of the run was stored."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made, real = synthetic_run().manifest, experiment_run.judge

    def judge(unjudged, *tables):
        if not unjudged.failure:
            raise ZeroDivisionError("float division by zero")
        return real(unjudged, *tables)

    stands_for = {
        "clock_readings": lambda *_: (),
        "NetworkReadings": Readings,
        "_outcome": lambda *_: (ExperimentResult(), ""),
        "_require_whole": lambda *_: None,
        "defect_records": lambda *_: (),
        "manifest": lambda *_: made,
        "judge": judge,
    }
    for name, stand_in in stands_for.items():
        monkeypatch.setattr(experiment_run, name, stand_in)
    recorder, store, said = Recorder(), Store.open(tmp_path / "store"), []
    recorder.add([Sample(1, "b1", "nic.rx.bytes", 2.0)])
    testbed, experiment = SimpleNamespace(places=dict), SimpleNamespace(name="kip73-two-node", criteria=())
    judgement = experiment_run.run_on(testbed, experiment, {}, "ci", made.run_id, store, said.append, recorder=recorder)
    assert (judgement.verdict, judgement.criteria[0].name) == ("inconclusive", "run-complete")
    stored = store.manifest(made.run_id)
    why = f"{OWN_ERROR}the run could not be judged: ZeroDivisionError: float division by zero (test_failed_"
    assert stored.failure.startswith(why)
    assert (stored.verdict, stored.move) == ("inconclusive", None)
    assert store.samples(made.run_id).num_rows == 1
    assert "Traceback" in store.events(made.run_id)["detail"].to_pylist()[-1]
    assert [line.partition(":")[0] for line in said] == [
        "the run could not be judged",
        f"committed {made.run_id} to {store.location}",
    ]


@pytest.mark.parametrize("machines", [{}, {"b1": "a machine that exists"}])
def test_an_engine_that_is_being_restarted_is_waited_for(monkeypatch, machines):
    """Containers may outlive a restart of their engine: the run was lost where it ended meanwhile."""
    asked = []
    engine = SimpleNamespace(wait_answering=lambda: asked.append("waited"))
    testbed = SimpleNamespace(state=SimpleNamespace(machines=machines), engine=engine, places=dict)
    monkeypatch.setattr(experiment_run, "why_not_whole", lambda *_: asked.append("looked") or "")
    experiment_run._require_whole(testbed, {})
    assert asked == (["looked"] if machines else ["waited", "looked"])


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TestbedError("one\ntwo"), "one\ntwo"),
        (StoreError("manifests/x.json is missing"), "manifests/x.json is missing"),
        (OSError(28, "No space left on device", "/r.html"), "No space left on device (/r.html); free space on that"),
        (KeyError("Rate"), f"{OWN_ERROR}KeyError: 'Rate' (test_failed_experiment.py:"),
    ],
)
def test_what_fails_after_the_commit_says_where_the_run_is(error, words):
    """A report that could not be written ended the command without a word of the run."""
    store, run = SimpleNamespace(location="/runs"), SimpleNamespace(verdict="pass")
    with pytest.raises(TestbedError) as raised, experiment_run._in_store("run-1", run, store):
        raise error
    assert str(raised.value).startswith(words)
    assert str(raised.value).endswith("\nrun run-1, pass, is in /runs")


def test_a_testbed_whose_hosts_a_killed_command_was_changing_is_refused(monkeypatch, tmp_path):
    """It was refused for its number of brokers, or measured with a broker that never ran."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    testbed = SimpleNamespace(name="one", state=make(changing={"b3": "1@1@another boot"}), close=lambda: None)
    monkeypatch.setattr(experiment_run.Testbed, "attach", lambda _name: testbed)
    experiment = SimpleNamespace(overlay=lambda _settings: {})
    why = "testbed one has b3, which a killed command was adding or removing: `testbed down one`"
    with pytest.raises(TestbedError, match=why), ExitStack() as stack:
        experiment_run._testbed(RunRequest("scale-out", on="one"), experiment, {}, "run-1", stack, print)


def test_a_full_disk_of_the_state_is_a_run_that_is_not_committed(monkeypatch, tmp_path):
    """The note of the commit ended a whole campaign with an error that named no run."""

    def full(*_):
        raise OSError(28, "No space left on device", "/state/commits/run-1")

    monkeypatch.setattr(record, "noted", full)
    data = SimpleNamespace(manifest=SimpleNamespace(run_id="run-1"))
    why = r"^run run-1 is not committed: No space left on device \(/state/commits/run-1\); free space"
    with pytest.raises(TestbedError, match=why):
        record.commit(Store.open(tmp_path), data)


def test_a_store_that_cannot_be_written_is_refused_before_the_first_run(monkeypatch, tmp_path):
    """A night on a read-only store ran three scenarios, and then ended."""
    location = str(tmp_path / "not" / "there")
    assert reports.open_store_for_runs(location).location == location
    monkeypatch.setattr(reports.os, "access", lambda _path, _mode: False)
    with pytest.raises(UsageError, match=rf"^{location} cannot be written: {tmp_path} is on a read-only"):
        reports.open_store_for_runs(location)
    assert reports.open_store(location).location == location  # to read it is enough


def test_a_bucket_that_does_not_exist_or_answer_is_refused_before_the_first_run(monkeypatch):
    """The run was made, and could not be committed then."""
    found = {"runs": fs.FileType.NotFound, "runs/night/index/index.json": fs.FileType.NotFound}
    refuses = OSError("AWS Error NETWORK_CONNECTION")

    def get_file_info(key):
        if found[key] is None:
            raise refuses
        return SimpleNamespace(type=found[key])

    store = Store(Files(SimpleNamespace(get_file_info=get_file_info), PurePosixPath("runs/night")), "s3://runs/night")
    monkeypatch.setattr(reports, "open_store", lambda _location: store)
    with pytest.raises(UsageError, match="^s3://runs/night: there is no bucket runs; make it, or give another store"):
        reports.open_store_for_runs("s3://runs/night")
    for there in (fs.FileType.Directory, None):  # None: this user may not ask for the bucket
        found["runs"] = there
        assert reports.open_store_for_runs("s3://runs/night") is store
    found["runs/night/index/index.json"] = None
    with pytest.raises(UsageError, match="^s3://runs/night cannot be reached: AWS Error NETWORK_CONNECTION; give"):
        reports.open_store_for_runs("s3://runs/night")
