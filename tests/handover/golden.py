"""What two brokers say while partition 3 of `orders-v2` goes from b1 to b2: written after what was seen of a real one.

Times are of 2026-11-22, UTC; the command is asked for at 08:00:00.000.
"""

from datetime import UTC, datetime

ASKED_US = round(datetime(2026, 11, 22, 8, 0, 0, tzinfo=UTC).timestamp() * 1_000_000)

SOURCE = """\
[2026-11-22 08:00:00,041] INFO [Broker id=1] Deleting 2 partition(s). (state.change.logger)
[2026-11-22 08:00:00,180] INFO [ElasticLog partition=orders-v2-3 epoch=4] log closed (kafka.log.streamaspect.ElasticLog)
[2026-11-22 08:00:00,181] INFO [ElasticReplicaManager broker=1] partition orders-v2-3 is closed, cost 139 ms \
(kafka.server.streamaspect.ElasticReplicaManager)
[2026-11-22 08:00:00,230] INFO [ElasticReplicaManager broker=1] partition orders-v2-30 is closed, cost 188 ms \
(kafka.server.streamaspect.ElasticReplicaManager)
[2026-11-22 08:00:00,231] INFO [ElasticReplicaManager broker=1] open 0 / make leader 0 / close 2 partitions cost 190ms \
(kafka.server.streamaspect.ElasticReplicaManager)
"""

TARGET = """\
[2026-11-22 08:00:00,052] INFO [Broker id=2] Transitioning partition(s) info: LocalReplicaChanges(deletes = [], \
newly elected leaders = {}, leaders = {orders-v2-3=PartitionInfo(topicId = Mq0Zb8vdTGq3yM0fJ4mH-1, partition = \
PartitionRegistration(replicas=[2], directories=[AAAAAAAAAAAAAAAAAAAAAQ], isr=[2], removingReplicas=[], \
addingReplicas=[], elr=[], lastKnownElr=[], leader=-1, leaderRecoveryState=RECOVERED, leaderEpoch=5, \
partitionEpoch=7))}, followers = {}, topicIds = {}, directoryIds = {}) (state.change.logger)
[2026-11-22 08:00:00,212] INFO [ElasticLog partition=orders-v2-3 epoch=5] opened existing meta stream: streamId=17 \
awaitCostMs=150 ms (kafka.log.streamaspect.ElasticLog)
[2026-11-22 08:00:00,260] INFO [ElasticLog partition=orders-v2-3 epoch=5] loaded partition meta: \
ElasticPartitionMeta{startOffset=0, cleanerOffset=0, recoverOffset=1200, cleanedShutdown=true} \
(kafka.log.streamaspect.ElasticLog)
[2026-11-22 08:00:00,261] INFO [ElasticLog partition=orders-v2-3 epoch=5] loaded no producer snapshots \
(kafka.log.streamaspect.ElasticLog)
[2026-11-22 08:00:00,310] INFO [ElasticLog partition=orders-v2-3 epoch=5] loaded log meta: \
ElasticLogMeta{streamMap={}, lastNRecords={}} (kafka.log.streamaspect.ElasticLog)
[2026-11-22 08:00:00,311] INFO [ElasticLog partition=orders-v2-3 epoch=5] loaded leader epoch checkpoint with 2 \
entries (kafka.log.streamaspect.ElasticLog)
[2026-11-22 08:00:00,312] INFO [ElasticLog partition=orders-v2-3 epoch=5] last leaderEpoch entry is: \
EpochEntry(epoch=4, startOffset=900) (kafka.log.streamaspect.ElasticLog)
[2026-11-22 08:00:00,340] INFO [ElasticReplicaManager broker=2] open 0 / make leader 1 / close 0 partitions cost 288ms \
(kafka.server.streamaspect.ElasticReplicaManager)
"""

# Where the old broker died: the new one waits for the streams to be closed by the controller, and recovers.
UNCLEAN = TARGET.replace("cleanedShutdown=true", "cleanedShutdown=false").replace(
    "[2026-11-22 08:00:00,310] INFO",
    "[2026-11-22 08:00:00,300] INFO [ElasticLog partition=orders-v2-3 epoch=5] [UNCLEAN_SHUTDOWN] recover range "
    "[1200, 1500) (kafka.log.streamaspect.ElasticLogSegment)\n[2026-11-22 08:00:00,310] INFO",
)

# Of the release that the article of 2024 is about: it elects from the broker that closes, and numbers streams so.
ARTICLE_SOURCE = """\
[2026-11-22 08:00:00,040] INFO [Broker id=1] Transitioning partition(s) info: LocalReplicaChanges(deletes = \
[orders-v2-3], leaders = {}, followers = {}) (state.change.logger)
[2026-11-22 08:00:00,150] INFO [ElasticLog partition=orders-v2-3 epoch=4] log(except for streams) closed \
(kafka.log.streamaspect.ElasticLog)
[2026-11-22 08:00:00,181] INFO [ReplicaManager broker=1] partition orders-v2-3 is closed, cost 139 ms, trigger leader \
election (kafka.server.ReplicaManager)
"""
ARTICLE_TARGET = TARGET.replace("streamId=17 awaitCostMs=150 ms", "stream_id=17")
