package org.apache.kafka.controller;

import java.util.List;

/** What defects see of Kafka's class of this name. */
public class PartitionChangeBuilder {
    public static final class Registration {
        public final int[] replicas;
        public final int[] addingReplicas;
        public final int[] removingReplicas;
        public final int leader;

        public Registration(int[] replicas, int[] addingReplicas, int[] removingReplicas, int leader) {
            this.replicas = replicas;
            this.addingReplicas = addingReplicas;
            this.removingReplicas = removingReplicas;
            this.leader = leader;
        }
    }

    // Public: it is of another class loader than the changed class.
    public static class ElectionResult {
        public final int node;
        public final boolean unclean;

        public ElectionResult(int node, boolean unclean) {
            this.node = node;
            this.unclean = unclean;
        }
    }

    private final Registration partition;
    private final String topicId;
    private final int partitionId;
    private final String election;
    private final List<Integer> live;
    private List<Integer> targetReplicas;
    private List<Integer> targetAdding;
    private List<Integer> targetRemoving;

    public PartitionChangeBuilder(
            Registration partition,
            String topicId,
            String election,
            List<Integer> live,
            List<Integer> targetReplicas,
            List<Integer> targetAdding,
            List<Integer> targetRemoving) {
        this.partition = partition;
        this.topicId = topicId;
        this.partitionId = 0;
        this.election = election;
        this.live = live;
        this.targetReplicas = targetReplicas;
        this.targetAdding = targetAdding;
        this.targetRemoving = targetRemoving;
    }

    public String partition() {
        return topicId + "-" + partitionId;
    }

    public int elected() {
        return electLeader().node;
    }

    public List<Integer> completed() {
        completeReassignmentIfNeeded();
        return targetReplicas;
    }

    ElectionResult electLeader() {
        if (election.equals("ONLINE") && isValidNewLeader(partition.leader)) {
            return new ElectionResult(partition.leader, false);
        }
        return new ElectionResult(
                targetReplicas.stream().filter(this::isValidNewLeader).findFirst().orElse(-1), false);
    }

    private boolean isValidNewLeader(int replica) {
        return live.contains(replica);
    }

    private void completeReassignmentIfNeeded() {
        if (!live.containsAll(targetAdding)) {
            return;
        }
        targetReplicas = targetReplicas.stream().filter(each -> !targetRemoving.contains(each)).toList();
        targetAdding = List.of();
        targetRemoving = List.of();
    }
}
