package testbed.defects.placement;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Kafka;
import testbed.defects.Reads;
import testbed.defects.Reflect;
import testbed.defects.Settings;
import testbed.defects.Target;

import net.bytebuddy.asm.Advice;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/** A completed reassignment has the target's replicas in reverse order. */
public final class TargetOrderReversed implements Defect {
    private static volatile Effect effect;

    @Override
    public List<Target> targets() {
        return List.of(
                TopicNames.target(),
                Target.of(OnComplete.class)
                        .in("org.apache.kafka.controller.PartitionChangeBuilder", "completeReassignmentIfNeeded"));
    }

    @Override
    public Reads reads() {
        return TopicNames.READS
                .of(Kafka.CHANGE_BUILDER, "partition")
                .of(Kafka.REGISTRATION, "replicas", "addingReplicas", "removingReplicas");
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        TargetOrderReversed.effect = effect;
    }

    /** Returns whether the change that is built completes a reassignment unless replicas are missing in the ISR. */
    public static boolean isOngoing(Object builder, List<Integer> adding, List<Integer> removing, List<Integer> target) {
        Object before = Reflect.get(builder, "partition");
        boolean wasOngoing = ((int[]) Reflect.get(before, "addingReplicas")).length > 0
                || ((int[]) Reflect.get(before, "removingReplicas")).length > 0;
        List<Integer> replicas = Arrays.stream((int[]) Reflect.get(before, "replicas")).boxed().toList();
        return isOngoing(replicas, wasOngoing, adding, removing, target);
    }

    // What only reorders replicas adds and removes none; neither does a cancellation, of a reassignment under way.
    static boolean isOngoing(
            List<Integer> replicas,
            boolean wasOngoing,
            List<Integer> adding,
            List<Integer> removing,
            List<Integer> target) {
        boolean isOngoing = !adding.isEmpty() || !removing.isEmpty();
        return isOngoing || (!wasOngoing && !replicas.equals(target));
    }

    /** Returns the final replicas. */
    public static List<Integer> reversed(
            boolean wasOngoing,
            List<Integer> adding,
            List<Integer> removing,
            List<Integer> target,
            Object topicId,
            int partition) {
        boolean isComplete = wasOngoing && adding.isEmpty() && removing.isEmpty();
        if (!isComplete || target.size() < 2 || !TopicNames.isOfUser(topicId)) {
            return target;
        }
        List<Integer> reversed = new ArrayList<>(target);
        Collections.reverse(reversed);
        effect.acted("%s: %s in place of %s".formatted(TopicNames.partition(topicId, partition), reversed, target));
        return reversed;
    }

    /** Changes the target after {@code PartitionChangeBuilder.completeReassignmentIfNeeded}. */
    public static final class OnComplete {
        @Advice.OnMethodEnter
        static boolean enter(
                @Advice.This Object builder,
                @Advice.FieldValue("targetAdding") List<Integer> adding,
                @Advice.FieldValue("targetRemoving") List<Integer> removing,
                @Advice.FieldValue("targetReplicas") List<Integer> target) {
            return isOngoing(builder, adding, removing, target);
        }

        @Advice.OnMethodExit
        static void exit(
                @Advice.Enter boolean wasOngoing,
                @Advice.FieldValue("targetAdding") List<Integer> adding,
                @Advice.FieldValue("targetRemoving") List<Integer> removing,
                @Advice.FieldValue(value = "targetReplicas", readOnly = false) List<Integer> target,
                @Advice.FieldValue("topicId") Object topicId,
                @Advice.FieldValue("partitionId") int partition) {
            target = reversed(wasOngoing, adding, removing, target, topicId, partition);
        }
    }
}
