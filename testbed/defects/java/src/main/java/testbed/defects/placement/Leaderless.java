package testbed.defects.placement;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Kafka;
import testbed.defects.OnePartition;
import testbed.defects.Parameter;
import testbed.defects.Reads;
import testbed.defects.Reflect;
import testbed.defects.Settings;
import testbed.defects.Target;

import net.bytebuddy.asm.Advice;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/** A completed reassignment leaves a partition without a leader. */
public final class Leaderless implements Defect {
    private static final int NO_LEADER = -1;
    private static volatile OnePartition partitions;
    private static volatile Effect effect;

    @Override
    public List<Parameter> parameters() {
        return OnePartition.PARAMETERS;
    }

    @Override
    public List<Target> targets() {
        return List.of(TopicNames.target(), Target.of(OnElect.class).in(Kafka.CHANGE_BUILDER, "electLeader"));
    }

    @Override
    public Reads reads() {
        return TopicNames.READS
                .of(Kafka.CHANGE_BUILDER, "partition")
                .of(Kafka.CHANGE_BUILDER + "$ElectionResult", "node")
                .of(Kafka.REGISTRATION, "replicas", "addingReplicas", "removingReplicas");
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        partitions = OnePartition.of(settings);
        Leaderless.effect = effect;
    }

    /** Changes the result of an election by a change that completes a reassignment. */
    public static void elect(
            Object builder,
            Object result,
            List<Integer> adding,
            List<Integer> removing,
            List<Integer> target,
            Object topicId,
            int partition) {
        String topic = TopicNames.name(topicId);
        if (topic == null || !partitions.is(topic, partition) || !adding.isEmpty() || !removing.isEmpty()) {
            return;
        }
        Object before = Reflect.get(builder, "partition");
        if (isCompleted(
                numbers(before, "replicas"),
                numbers(before, "addingReplicas"),
                numbers(before, "removingReplicas"),
                target)) {
            effect.acted("%s: no leader in place of %s"
                    .formatted(TopicNames.partition(topicId, partition), Reflect.get(result, "node")));
            Reflect.set(result, "node", NO_LEADER);
        }
    }

    /** Returns whether a change after which nothing is reassigned completes a reassignment: it may cancel one. */
    static boolean isCompleted(
            List<Integer> replicas, List<Integer> adding, List<Integer> removing, List<Integer> target) {
        if (adding.isEmpty() && removing.isEmpty()) {
            // One without a copy is completed by the change that begins it.
            return !replicas.equals(target);
        }
        return target.containsAll(adding) && Collections.disjoint(target, removing);
    }

    private static List<Integer> numbers(Object registration, String name) {
        return Arrays.stream((int[]) Reflect.get(registration, name)).boxed().toList();
    }

    /** Changes what {@code PartitionChangeBuilder.electLeader} returns. */
    public static final class OnElect {
        @Advice.OnMethodExit
        static void exit(
                @Advice.This Object builder,
                @Advice.Return Object result,
                @Advice.FieldValue("targetAdding") List<Integer> adding,
                @Advice.FieldValue("targetRemoving") List<Integer> removing,
                @Advice.FieldValue("targetReplicas") List<Integer> target,
                @Advice.FieldValue("topicId") Object topicId,
                @Advice.FieldValue("partitionId") int partition) {
            elect(builder, result, adding, removing, target, topicId, partition);
        }
    }
}
