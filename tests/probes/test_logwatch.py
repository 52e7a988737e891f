import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from results.contract.logs import HostLog, LogFinding, ProcessEnd
from results.criteria.catalogue.logs_clean import judge_logs
from testbed.errors import TestbedError
from testbed.faults.parse import kinds as fault_kinds
from testbed.hosts import CommandFailed, CommandResult
from testbed.probes.allow_list import (
    Allowance,
    AllowListError,
    during,
    loads,
    new_replicas,
    overtaken_batches,
    shipped,
    unexplained,
)
from testbed.probes.log_entries import LogEntry, entries
from testbed.probes.logwatch import MOST_KINDS, LogWatch, kinds, read_since, terminations

HEAD = "[2026-11-21 19:39:15,554]"
MOVED = (
    "[Broker id=2] Expected partition kip73-c5b667-{} with topic id hSibU4hLQ-esIPl86BkQ2w to exist, "
    "but it was missing. Creating..."
)
TEXT = f"""\
\tat the.end.of.another(Entry.java:1)
{HEAD} INFO KafkaConfig values:
\ta = 1
\tb = (2)
 (org.apache.kafka.common.config.AbstractConfig)
{HEAD} WARN one thing (kafka.server.KafkaApis)
{HEAD} ERROR [Broker id=2] it (sadly) failed (kafka.log.LogManager)
java.io.IOException: No space left on device
\tat java.base/java.lang.Thread.run(Thread.java:840)
Exception in thread "main" java.lang.OutOfMemoryError: Java heap space
{HEAD} INFO the end (a.B$c)
"""


def entry(level="WARN", message="m", logger="a.B", trace=()):
    return LogEntry(1, level, logger, message, trace)


class TestLines:
    def test_a_log_is_read_into_entries(self):
        found = list(entries(TEXT))
        assert [(e.level, e.logger) for e in found] == [
            ("INFO", "org.apache.kafka.common.config.AbstractConfig"),
            ("WARN", "kafka.server.KafkaApis"),
            ("ERROR", "kafka.log.LogManager"),
            ("FATAL", "jvm"),
            ("INFO", "a.B$c"),
        ]
        assert found[0].message == "KafkaConfig values:\n\ta = 1\n\tb = (2)\n"
        assert found[1].ts_us == 1_795_289_955_554_000

    def test_a_stack_trace_belongs_to_its_first_line(self):
        failed = list(entries(TEXT))[2]
        assert failed.message == "[Broker id=2] it (sadly) failed"
        assert failed.full_message == "[Broker id=2] it (sadly) failed: java.io.IOException: No space left on device"
        assert len(failed.trace) == 2

    def test_what_the_jvm_says_of_its_own_death_is_not_hidden_in_the_entry_before(self):
        dying = list(entries(TEXT))[3]
        assert dying.message == 'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space'

    @pytest.mark.parametrize("text", ["", "\n", "no head at all\n(a.B)\n"])
    def test_without_a_head_there_is_no_entry(self, text):
        assert list(entries(text)) == []


class TestAllowList:
    def test_the_shipped_list_loads_and_every_entry_says_why(self):
        assert shipped()
        for allowance in shipped():
            assert len(allowance.why) > 40

    @pytest.mark.parametrize(
        ("version", "line", "known"),
        [
            (
                "4.3.1",
                "WARN [QuorumController id=1] Performing controller activation. The metadata log appears to be empty. "
                "Appending 6 bootstrap record(s) in metadata transaction at metadata.version 4.3-IV0 from bootstrap "
                "source 'the binary bootstrap metadata file: /var/lib/kafka/bootstrap.checkpoint'. "
                "(org.apache.kafka.controller.QuorumController)",
                True,
            ),
            (
                "3.9.2",
                "WARN [QuorumController id=1] Performing controller activation. The metadata log appears to be empty. "
                "Appending 1 bootstrap record(s) in metadata transaction at metadata.version 3.9-IV0 from bootstrap "
                "source 'the binary bootstrap metadata file: /var/lib/kafka/bootstrap.checkpoint'. Setting the ZK "
                "migration state to NONE since this is a de-novo KRaft cluster. "
                "(org.apache.kafka.controller.QuorumController)",
                True,
            ),
            (
                "3.9.2",
                "WARN [NodeToControllerChannelManager id=1 name=registration] Attempting to close NetworkClient that "
                "has already been closed. (org.apache.kafka.clients.NetworkClient)",
                True,
            ),
            (
                "4.3.1",
                "ERROR Encountered error while querying or creating __remote_log_metadata topic. "
                "(org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager)\n"
                "java.util.concurrent.ExecutionException: org.apache.kafka.common.errors."
                "InvalidReplicationFactorException: Unable to replicate the partition 3 time(s): The target "
                "replication factor of 3 cannot be reached because only 2 broker(s) are registered or some brokers "
                "have all their log directories cordoned.",
                True,
            ),
            # The same for another reason.
            (
                "4.3.1",
                "ERROR Encountered error while querying or creating __remote_log_metadata topic. "
                "(org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager)\n"
                "java.util.concurrent.ExecutionException: org.apache.kafka.common.errors.TimeoutException: "
                "Call(callName=createTopics, deadlineMs=1, tries=1) timed out at 1 after 1 attempt(s)",
                False,
            ),
            (
                "4.3.1",
                "WARN Auto topic creation failed for __consumer_offsets with error 'TOPIC_ALREADY_EXISTS': Topic "
                "'__consumer_offsets' already exists. (kafka.server.DefaultAutoTopicCreationManager)",
                True,
            ),
            (
                "4.2.1",
                "WARN Auto topic creation failed for __consumer_offsets with error 'TOPIC_ALREADY_EXISTS': Topic "
                "'__consumer_offsets' already exists. (kafka.server.DefaultAutoTopicCreationManager)",
                True,
            ),
            # Another controller takes over, or one that was away: nobody restarted it within the watch.
            (
                "4.3.1",
                "WARN [QuorumController id=1] Performing controller activation. "
                "(org.apache.kafka.controller.QuorumController)",
                False,
            ),
            # While a cluster starts, and whenever its controller is gone.
            (
                "3.9.2",
                "WARN [RaftManager id=2] Connection to node 1 (/198.19.0.11:9094) could not be established. Node may "
                "not be available. (org.apache.kafka.clients.NetworkClient)",
                False,
            ),
        ],
    )
    def test_lines_that_brokers_were_heard_to_say(self, version, line, known):
        (heard,) = entries(f"{HEAD} {line}\n")
        assert unexplained([heard], "b1", version, shipped()) == ([] if known else [heard])

    THROWN, LATER = "org.apache.kafka.common.errors", "java.util.concurrent.CompletionException: "
    NOT_ACTIVE = (
        "ERROR [ControllerApis nodeId=2] Unexpected error handling request RequestHeader(apiKey=BROKER_HEARTBEAT, "
        "apiVersion=2, clientId=2, correlationId=19, headerVersion=2) -- BrokerHeartbeatRequestData(brokerId=2, "
        "brokerEpoch=10, currentMetadataOffset=49, wantFence=false, wantShutDown=false, offlineLogDirs=[], "
        "cordonedLogDirs=[]) with context RequestContext(header=RequestHeader(apiKey=BROKER_HEARTBEAT, apiVersion=2, "
        "clientId=2, correlationId=19, headerVersion=2), connectionId='198.19.0.12:9094-198.19.0.12:60512-1-4', "
        "clientAddress=/198.19.0.12, principal=User:ANONYMOUS, listenerName=ListenerName(CONTROLLER), "
        "securityProtocol=PLAINTEXT, clientInformation=ClientInformation(softwareName=apache-kafka-java, "
        "softwareVersion=4.3.1), fromPrivilegedListener=false, principalSerde=Optional[a.b.C$D@67884041]) "
        "(kafka.server.ControllerApis)\n{}\n"
    )

    @pytest.mark.parametrize(
        ("line", "known_during"),
        [
            (NOT_ACTIVE.format(f"{THROWN}.NotControllerException: The active controller appears to be node 2."), True),
            # Of what a controller had begun to write when it lost its place.
            (NOT_ACTIVE.format(f"{LATER}{THROWN}.NotControllerException: No controller appears to be active."), True),
            (NOT_ACTIVE.format(f"{THROWN}.UnknownServerException: The server experienced an unexpected error."), False),
            (NOT_ACTIVE.format(f"{LATER}{THROWN}.UnknownServerException: The server experienced an error."), False),
            (
                "ERROR [QuorumController id=3] Exceptionally slow controller event writeNoOpRecord took 3504 ms. "
                "(org.apache.kafka.controller.EventPerformanceMonitor)\n",
                True,
            ),
        ],
        ids=[
            "not the active controller",
            "a write of it",
            "another error",
            "another error of a write",
            "a controller without its quorum",
        ],
    )
    def test_what_belongs_to_a_fault_is_known_while_there_is_one(self, line, known_during):
        (heard,) = entries(f"{HEAD} {line}")
        assert unexplained([heard], "b1", "4.3.1", shipped()) == [heard]
        assert unexplained([heard], "b1", "4.3.1", [*shipped(), *during(["quota-alter"])]) == [heard]
        with_fault = unexplained([heard], "b1", "4.3.1", [*shipped(), *during(["nic-cut"])])
        assert with_fault == ([] if known_during else [heard])

    CLOSING = (
        "{at} INFO Closing the instance (org.apache.kafka.server.log.remote.metadata.storage.ConsumerTask)\n"
        f"{HEAD} ERROR Error occurred while processing the records "
        "(org.apache.kafka.server.log.remote.metadata.storage.ConsumerTask)\n"
        "java.lang.{thrown}\n"
    )
    UNASSIGNED = "IllegalStateException: Consumer is not subscribed to any topics or assigned any partitions"

    @pytest.mark.parametrize(
        ("at", "thrown", "known"),
        [
            (HEAD, UNASSIGNED, True),
            (HEAD.replace("15,554", "14,553"), UNASSIGNED, False),
            (HEAD, "IllegalStateException: This consumer has already been closed.", False),
        ],
    )
    def test_a_broker_without_remote_logs_polls_once_more_when_it_is_stopped(self, at, thrown, known):
        said = list(entries(self.CLOSING.format(at=at, thrown=thrown)))
        left = unexplained(said, "b1", "4.3.1", shipped())
        assert [each.level for each in left] == ([] if known else ["ERROR"])

    FETCHER = "[ReplicaFetcher replicaId=3, leaderId=1, fetcherId=0]"
    FAILED = f"{HEAD} WARN {FETCHER} Partition kip435-c5b667-12 marked as failed (kafka.server.ReplicaFetcherThread)\n"
    FENCED = (
        "{at} INFO {fetcher} Partition {partition} has an older epoch (4) than the current leader. Will await the new "
        "LeaderAndIsr state before resuming fetching. ({logger})\n"
    )

    @pytest.mark.parametrize(
        ("told", "known"),
        [
            ({}, True),
            ({"at": HEAD.replace("15,554", "14,554")}, True),
            ({"at": HEAD.replace("15,554", "14,553")}, False),
            ({"partition": "kip435-c5b667-1"}, False),
            ({"fetcher": FETCHER.replace("leaderId=1", "leaderId=2")}, False),
            ({"logger": "kafka.server.ReplicaAlterLogDirsThread"}, False),
        ],
        ids=["just before", "a second before", "longer ago", "another partition", "another fetcher", "another thread"],
    )
    def test_a_fenced_follower_is_known_by_the_reason_that_it_gives(self, told, known):
        words = {"at": HEAD, "fetcher": self.FETCHER, "partition": "kip435-c5b667-12"}
        words |= {"logger": "kafka.server.ReplicaFetcherThread"} | told
        between = f"{HEAD} INFO [Broker id=3] something else (state.change.logger)\n"
        found = list(entries(self.FENCED.format(**words) + between + self.FAILED))
        assert unexplained(found, "b3", "4.3.1", shipped()) == ([] if known else found[-1:])

    def test_after_an_upgrade_the_reason_counts_for_the_lines_of_both_releases(self):
        words = {"at": HEAD, "fetcher": self.FETCHER, "partition": "kip435-c5b667-12"}
        fenced = self.FENCED.format(**words, logger="kafka.server.ReplicaFetcherThread")
        found = list(entries(fenced + self.FAILED))
        [later] = [
            replace(each, since=(4, 3, 0))
            for each in shipped()
            if each.before and each.logger == "kafka.server.ReplicaFetcherThread"
        ]
        assert unexplained(found, "b3", "4.2.1", [later]) == found[-1:]
        assert unexplained(found, "b3", "4.2.1", [later], upgraded_to="4.3.1") == []

    def test_a_partition_that_failed_for_another_reason_is_not_known(self):
        storage = (
            f"{HEAD} ERROR {self.FETCHER} Error while processing data for partition kip435-c5b667-12 at offset 7 "
            "(kafka.server.ReplicaFetcherThread)\norg.apache.kafka.common.errors.KafkaStorageException: no\n"
        )
        found = list(entries(storage + self.FAILED))
        assert unexplained(found, "b3", "4.3.1", shipped()) == found

    NODE = (
        "/198.19.0.11:9094) could not be established. Node may not be available. "
        "(org.apache.kafka.clients.NetworkClient)"
    )
    FETCH = (
        f"WARN {FETCHER} Error in response for fetch request (type=FetchRequest, replicaId=3, maxWait=500, minBytes=1, "
        "maxBytes=1048576, fetchData={}, isolationLevel=READ_UNCOMMITTED, removed=, replaced=, metadata=(sessionId=1, "
        "epoch=INITIAL), rackId=) (kafka.server.ReplicaFetcherThread)\n"
    )
    ACTIVATED = (
        "WARN [QuorumController id=2] Performing controller activation.{} "
        "(org.apache.kafka.controller.QuorumController)"
    )

    @pytest.mark.parametrize(
        ("line", "known"),
        [
            (f"WARN [RaftManager id=2] Connection to node 1 ({NODE}", True),
            (f"WARN {FETCHER} Connection to node 1 ({NODE}", True),
            (f"WARN [NodeToControllerChannelManager id=2 name=heartbeat] Connection to node 1 ({NODE}", True),
            (f"WARN [AdminClient clientId=x] Connection to node 1 ({NODE}", False),
            (f"WARN [RaftManager id=2] Connection to node 1 ({NODE.replace('198.19', '10.0')}", False),
            (FETCH + "java.io.IOException: Connection to 1 was disconnected before the response was read\n", True),
            (FETCH + "java.io.IOException: Connection to 198.19.0.11:9092 (id: 1 rack: r1) failed.\n", True),
            (
                FETCH
                + "java.io.IOException: Connection to 198.19.0.11:9092 (id: 1 rack: null isFenced: false) failed.\n",
                True,
            ),
            (FETCH + "java.net.SocketTimeoutException: Failed to connect within 30000 ms\n", True),
            (FETCH + "org.apache.kafka.common.errors.TopicAuthorizationException: no\n", False),
            (ACTIVATED.format(""), True),
            (
                ACTIVATED.format(
                    " Loaded ZK migration state of NONE. This is expected because this is a de-novo KRaft cluster."
                ),
                True,
            ),
            (ACTIVATED.format(" Aborting in-progress metadata transaction at offset 7."), False),
            (
                "WARN [QuorumController id=1] Renouncing the leadership due to a metadata log event. We were the "
                "leader at epoch 3, but in the new epoch 4, the leader is (none). Reverting to last stable offset 99. "
                "(org.apache.kafka.controller.QuorumController)",
                True,
            ),
        ],
    )
    def test_what_is_said_of_a_peer_that_is_gone_is_known_while_one_is(self, line, known):
        found = list(entries(f"{HEAD} {line}"))
        assert unexplained(found, "b3", "4.3.1", shipped()) == found
        assert unexplained(found, "b3", "4.3.1", [*shipped(), *during(["quota-alter"])]) == found
        assert unexplained(found, "b3", "4.3.1", during(["broker-restart"])) == ([] if known else found)

    def test_the_faults_that_lines_belong_to_are_faults(self):
        kinds = set(fault_kinds())
        belonging = during(kinds)
        assert belonging
        for allowance in belonging:
            assert allowance.during <= kinds
            assert len(allowance.why) > 40

    def test_an_entry_explains_what_it_names_and_nothing_else(self):
        (allowed,) = loads("entries: [{logger: a.B, pattern: 'm \\d+', why: w, since: 4.0.0, until: 4.2.1}]", "x")
        assert allowed.explains(entry(message="m 1"), "b1", "4.0.0")
        assert allowed.explains(entry(message="m 1"), "b1", "4.2.1")
        for other, version in (
            (entry(message="m 1 and more"), "4.0.0"),
            (entry(message="m 1", logger="a.C"), "4.0.0"),
            (entry(message="m 1", level="ERROR"), "4.0.0"),
            (entry(message="m 1"), "3.9.2"),
            (entry(message="m 1"), "4.2.2"),
            (entry(message="m 1"), "4.10.0"),
            (entry(message="m 1"), "a-branch"),
        ):
            assert not allowed.explains(other, "b1", version)

    def test_a_build_without_a_release_is_newer_than_all(self):
        (allowed,) = loads("entries: [{logger: a.B, pattern: m, why: w, since: 4.0.0}]", "x")
        assert allowed.explains(entry(), "b1", "a-branch")
        assert not allowed.explains(entry(), "b1", "3.9.2+0123456789ab")

    def test_replicas_that_are_moved_are_expected_where_they_go_and_nowhere_else(self):
        allowed = new_replicas(["kip73-c5b667"], ["b2"])
        missing = entry("ERROR", MOVED.format(8), "state.change.logger")
        other = replace(missing, message=missing.message.replace("kip73", "kip74"))
        assert unexplained([missing], "b2", "4.3.1", [allowed]) == []
        assert unexplained([missing], "b1", "4.3.1", [allowed]) == [missing]
        assert unexplained([other], "b2", "4.3.1", [allowed]) == [other]

    def test_a_line_for_each_of_many_replicas_is_compared_with_no_other(self):
        """Each was compared with all of the second before it: a log of 10,000 such lines took as much as 10,000²."""

        class Read(list):
            reads = 0

            def __getitem__(self, at):
                self.reads += 1
                return super().__getitem__(at)

        found = Read(entry("ERROR", MOVED.format(number), "state.change.logger") for number in range(300))
        assert unexplained(found, "b2", "4.3.1", [*shipped(), new_replicas(["kip73-c5b667"], ["b2"])]) == []
        assert found.reads <= len(found)

    def test_a_producers_request_may_overtake_one_that_the_old_leader_refused(self):
        allowed = overtaken_batches(["kip73-c5b667"], ["b1"])
        where = "zZPVpXHJQfK7bZrWS1jE7g:kip73-c5b667-33"
        for release, partition in (("4.3.1", where), ("3.9.2", "kip73-c5b667-33")):
            refused = entry(
                "ERROR",
                f"[ReplicaManager broker=1] Error processing append operation on partition {partition}",
                "kafka.server.ReplicaManager",
                (
                    "org.apache.kafka.common.errors.OutOfOrderSequenceException: Out of order sequence number for "
                    "producer 1000 at offset 694 in partition kip73-c5b667-33: 391 (incoming seq. number), 375 "
                    "(current end sequence number)",
                ),
            )
            other = replace(refused, trace=("org.apache.kafka.common.errors.KafkaStorageException: Error",))
            assert unexplained([refused], "b1", release, [allowed]) == []
            assert unexplained([refused], "b2", release, [allowed]) == [refused]
            assert unexplained([other], "b1", release, [allowed]) == [other]

    def test_info_needs_no_explanation(self):
        assert unexplained([entry("INFO"), entry("WARN")], "b1", "4.3.1", []) == [entry("WARN")]

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("- {logger: a.B, pattern: m}", "x:2:3: entries[0].why: missing"),
            (
                "- logger: a.B\n  pattern: '('\n  why: w",
                "x:3:12: entries[0].pattern: not a regular expression",
            ),
            ("- logger: a.B\n  pattern: .*\n  why: w", "x:3:12: entries[0].pattern: it matches anything"),
            ("- {logger: a.B, pattern: m, why: ' '}", "x:2:34: entries[0].why: expected text"),
            ("- {logger: a.B, pattern: m, why: w, level: [WARN]}", "x:2:37: entries[0].level: unknown field level"),
            (
                "- {logger: a.B, pattern: m, why: w, levels: [INFO]}",
                "x:2:46: entries[0].levels[0]: INFO; allowed",
            ),
            ("- {logger: a.B, pattern: m, why: w, levels: []}", "x:2:45: entries[0].levels: it is empty"),
            ("- {logger: a.B, pattern: m, why: w, levels: WARN}", "x:2:45: entries[0].levels: WARN instead of a list"),
            ("- {logger: a.B, pattern: m, why: w, during: x}", "x:2:45: entries[0].during: x instead of a list"),
            ("- {logger: a.B, pattern: m, why: w, since: 4.0}", "x:2:44: entries[0].since: expected a Kafka release"),
            (
                "- {logger: a.B, pattern: '(?P<a>m)', why: w, before: m}",
                "x:2:54: entries[0].before: it has no named group",
            ),
            (
                "- {logger: a.B, pattern: '(?P<a>m)', why: w, before: '(?P<b>m)'}",
                "x:2:54: entries[0].before: pattern has no group named b",
            ),
            ("- WARN", "x:2:3: entries[0]: WARN instead of a mapping"),
            ("a: b", "x:2:1: a: unknown field a; allowed: entries"),
            ("- [", "x:2:4: not valid YAML"),
        ],
    )
    def test_a_mistake_is_told_with_its_place(self, text, told):
        with pytest.raises(AllowListError, match=re.escape(told)):
            loads(f"entries:\n{text}", "x")

    def test_all_mistakes_are_told_at_once(self):
        with pytest.raises(AllowListError) as refused:
            loads("entries:\n- {logger: a.B}\n- {pattern: m, why: w}", "x")
        assert [line.split(": ")[0] for line in str(refused.value).splitlines()] == ["x:2:3", "x:2:3", "x:3:3"]


class FakeHost:
    """A host whose log is a string; knows the commands of the watch."""

    def __init__(self, name="b1", log=b""):
        self.name, self.log = name, log

    def run(self, command):
        if self.log is None and "else echo 0" not in command:
            result = CommandResult(command, 1, "", "stat: cannot statx: No such file or directory", 0.0)
            raise CommandFailed(self.name, result)
        size = len(self.log or b"")
        if "tail" not in command:
            return SimpleNamespace(stdout=f"{size}\n")
        begin = int(re.search(r"tail -c \+(\d+)", command)[1]) - 1
        most = int(re.search(r"head -c (\d+)", command)[1])
        return SimpleNamespace(stdout=f"{size}\n" + self.log[begin : begin + most].decode(errors="replace"))


def watching(*hosts, allowances=()):
    kafka = {host.name: "4.3.1" for host in hosts}
    testbed = SimpleNamespace(hosts={host.name: host for host in hosts}, kafka_versions=kafka)
    return LogWatch(testbed, allowances)


def line(level, text):
    return f"{HEAD} {level} {text} (a.B)\n".encode()


class TestWatch:
    def test_only_what_is_said_after_the_start_counts(self):
        host = FakeHost(log="é".encode() + line("ERROR", "old"))
        watch = watching(host)
        watch.start()
        host.log += line("WARN", "ünexpected") + line("INFO", "fine")
        assert watch.logs() == (
            HostLog("b1", None, (LogFinding("b1", 1_795_289_955_554_000, "WARN", "a.B", "ünexpected", 1),)),
        )
        assert watch.findings() == watch.logs()[0].findings

    def test_a_log_that_begins_after_the_start_counts_from_its_beginning(self):
        host = FakeHost(log=None)
        watch = watching(host)
        watch.start()
        host.log = line("WARN", "first words")
        assert [finding.text for finding in watch.findings()] == ["first words"]

    def test_an_allowance_of_the_experiment_explains(self):
        host = FakeHost()
        watch = watching(host, allowances=[Allowance("a.B", re.compile("on purpose"), "w")])
        watch.start()
        host.log += line("WARN", "on purpose") + line("ERROR", "also on purpose")
        assert [finding.level for finding in watch.findings()] == ["ERROR"]
        watch.allow(Allowance("a.B", re.compile("also on purpose"), "w", levels=("ERROR",)))
        assert watch.findings() == ()

    def test_a_half_written_line_is_left_for_later(self):
        host = FakeHost()
        watch = watching(host)
        watch.start()
        host.log += line("WARN", "whole") + f"{HEAD} ERROR hal".encode()
        assert [finding.text for finding in watch.findings()] == ["whole"]

    @pytest.mark.parametrize("log", [None, b""])
    def test_a_log_that_is_gone_or_replaced_is_not_clean(self, log):
        host = FakeHost(log=line("INFO", "x"))
        watch = watching(host, FakeHost("b2"))
        watch.start()
        host.log = log
        one, two = watch.logs()
        assert one.problem
        assert two == HostLog("b2")
        with pytest.raises(TestbedError, match="b1: the log"):
            watch.findings()

    def test_a_watch_that_was_not_started_is_not_clean(self):
        assert watching(FakeHost()).logs()[0].problem == "the watch was not started"

    def test_a_host_that_did_not_answer_at_the_start_is_told_of(self):
        host = FakeHost()
        host.run = lambda _command: SimpleNamespace(stdout="")
        watch = watching(host)
        watch.start()
        assert "where the log ended at the start" in watch.logs()[0].problem

    def test_what_is_too_much_to_read_is_said(self):
        host = FakeHost(log=line("INFO", "x") * 10)
        text, problem = read_since(host, 0, most_bytes=100)
        assert text.count("\n") == 100 // len(line("INFO", "x"))
        assert problem == "only the first 100B of 390B of the log were read"

    def test_lines_that_differ_in_numbers_and_ids_are_one_finding(self):
        found = kinds("b2", [entry("WARN", "w"), *(entry("ERROR", MOVED.format(n)) for n in range(100))])
        assert [(finding.level, finding.count) for finding in found] == [("ERROR", 100), ("WARN", 1)]
        assert found[0].text == MOVED.format(0)

    def test_what_was_thrown_is_told_and_long_texts_are_cut(self):
        (found,) = kinds("b1", [entry("ERROR", "it\n failed", trace=("java.io.IOException: " + "x" * 999, "\tat y"))])
        assert found.text.startswith("it failed: java.io.IOException: xxx")
        assert len(found.text) == 400

    def test_how_the_process_ended_is_read_also_behind_a_line_that_kafka_did_not_end(self):
        host = FakeHost()
        watch = watching(host)
        watch.start()
        ended = f"{HEAD} INFO The process ended with status"
        host.log += line("INFO", "x") + f"{HEAD} INFO hal{ended} 137 (testbed)\n{ended} 1 (testbed)\n".encode()
        host.log += line("WARN", "The process ended with status 2 (testbed)")
        (log,) = watch.logs()
        assert log.ended == (ProcessEnd(1_795_289_955_554_000, 137), ProcessEnd(1_795_289_955_554_000, 1))
        assert log.terminated_us == ()

    def test_many_kinds_are_cut_the_most_severe_kept(self):
        host = FakeHost()
        watch = watching(host)
        watch.start()
        host.log = b"".join(line("WARN", "w" * n) for n in range(1, MOST_KINDS + 11)) + line("ERROR", "e")
        (log,) = watch.logs()
        assert (len(log.findings), log.more, log.findings[0].text) == (MOST_KINDS, 11, "e")


def finding(level="WARN", text="t", count=1, host="b1"):
    return LogFinding(host, 1, level, "a.B", text, count)


class TestJudgement:
    def verdicts(self, *logs, brokers=("b1",)):
        return [(c.host, c.verdict, c.observed, c.why) for c in judge_logs(logs, brokers)]

    def test_a_clean_log_passes(self):
        ((host, verdict, observed, _why),) = self.verdicts(HostLog("b1"))
        assert (host, verdict, observed) == ("b1", "pass", "0 ERROR")

    def test_a_warning_is_attached_and_an_error_fails(self):
        warned, failed = HostLog("b1", None, (finding(count=3),)), HostLog("b2", None, (finding("ERROR", host="b2"),))
        assert self.verdicts(warned, failed, brokers=("b1", "b2")) == [
            ("b1", "pass", "0 ERROR, 3 WARN", "3 × WARN t (B)"),
            ("b2", "fail", "1 ERROR", "ERROR t (B)"),
        ]

    def test_the_worst_is_told_first_and_many_are_counted(self):
        log = HostLog("b1", None, (*(finding(text=f"w{n}") for n in range(6)), finding("FATAL", "f")), more=4)
        ((_host, verdict, observed, why),) = self.verdicts(log)
        assert (verdict, observed) == ("fail", "0 ERROR, 1 FATAL, 6 WARN")
        assert why.startswith("FATAL f (B); WARN w0")
        assert why.endswith("; and 8 more")

    @pytest.mark.parametrize(
        "logged",
        [
            f"{HEAD} ERROR [KafkaApi-1] Unexpected error handling request {'Header(apiKey=FETCH) -- ' * 30}"
            "(kafka.server.KafkaApis)\njava.lang.OutOfMemoryError: Java heap space\n\tat a.B.c(B.java:1)\n",
            f"{HEAD} ERROR [KafkaApi-1] Unexpected error handling request {'Header(apiKey=FETCH) -- ' * 12}"
            "(kafka.server.KafkaApis)\njava.lang.OutOfMemoryError: Cannot reserve 9 bytes of direct buffer memory\n",
            f"{HEAD} ERROR [ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Error due to "
            "(kafka.server.ReplicaFetcherThread)\njava.lang.OutOfMemoryError: GC overhead limit exceeded\n",
            'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space\n',
            'Exception: java.lang.OutOfMemoryError thrown from the UncaughtExceptionHandler in thread "main"\n',
            "Terminating due to java.lang.OutOfMemoryError: Java heap space\n",
        ],
    )
    def test_a_broker_without_memory_fails_and_the_reason_names_it(self, logged):
        """Kafka goes on after such an error, with fewer threads."""
        log = HostLog("b1", None, kinds("b1", list(unexplained(list(entries(logged)), "b1", "4.3.1", shipped()))))
        ((_host, verdict, _observed, why),) = self.verdicts(log)
        assert verdict == "fail"
        assert "java.lang.OutOfMemoryError" in why
        assert len(why) < 200

    def test_a_log_that_was_not_read_is_inconclusive_unless_it_fails_already(self):
        unread, failed = HostLog("b1", "gone"), HostLog("b1", "cut", (finding("ERROR"),))
        assert self.verdicts(unread)[0][1:] == ("inconclusive", None, "gone")
        assert self.verdicts(HostLog("b1", "cut", (finding(),)))[0][3] == "cut; what was read: WARN t (B)"
        assert self.verdicts(failed)[0][1] == "fail"

    def test_a_broker_that_was_not_watched_and_a_run_without_a_watch_are_inconclusive(self):
        assert [v[1] for v in self.verdicts(HostLog("c1"), brokers=("b1",))] == ["inconclusive", "pass"]
        assert [c.verdict for c in judge_logs(None, ("b1", "b2"))] == ["inconclusive"] * 2


def test_a_signal_that_ended_kafka_is_told_from_an_end_of_its_own():
    logger = "(org.apache.kafka.common.utils.LoggingSignalHandler)"
    text = (
        f"{HEAD} INFO Terminating process due to signal SIGTERM {logger}\n"
        f"{HEAD} INFO [BrokerServer id=1] shutting down (kafka.server.BrokerServer)\n"
    )
    (when,) = terminations(entries(text))
    assert when == next(iter(entries(text))).ts_us
    assert terminations(list(entries(text))[1:]) == ()
