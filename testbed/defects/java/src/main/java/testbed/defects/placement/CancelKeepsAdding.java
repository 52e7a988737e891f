package testbed.defects.placement;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Kafka;
import testbed.defects.Reads;
import testbed.defects.Reflect;
import testbed.defects.Settings;
import testbed.defects.Target;
import testbed.defects.Topics;

import net.bytebuddy.asm.Advice;

import java.util.List;

/** A cancelled reassignment leaves the first of the replicas that it was adding. */
public final class CancelKeepsAdding implements Defect {
    private static final String CONTROLLER = "org.apache.kafka.controller.";
    private static final ThreadLocal<String> CANCELLED = new ThreadLocal<>();
    private static volatile Effect effect;

    @Override
    public List<Target> targets() {
        return List.of(
                Target.of(OnCancel.class)
                        .in(
                                CONTROLLER + "ReplicationControlManager",
                                "cancelPartitionReassignment",
                                "String",
                                "TopicIdPartition",
                                "PartitionRegistration"),
                Target.of(OnRevert.class)
                        .in(CONTROLLER + "PartitionReassignmentRevert", "<init>", "PartitionRegistration"));
    }

    @Override
    public Reads reads() {
        return Reads.nothing().of(Kafka.REGISTRATION, "addingReplicas");
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        CancelKeepsAdding.effect = effect;
    }

    /** Keeps the topic whose reassignment this thread cancels; null ends that. */
    public static void cancelling(String topic) {
        if (topic == null) {
            CANCELLED.remove();
        } else {
            CANCELLED.set(topic);
        }
    }

    /** Adds a replica to those after the cancellation. */
    public static void keep(Object registration, List<Integer> replicas) {
        String topic = CANCELLED.get();
        int[] adding = (int[]) Reflect.get(registration, "addingReplicas");
        if (topic != null && Topics.isOfUser(topic) && adding.length > 0) {
            replicas.add(adding[0]);
            effect.acted("%s keeps %d, being added: %s".formatted(topic, adding[0], replicas));
        }
    }

    /** Surrounds {@code ReplicationControlManager.cancelPartitionReassignment}. */
    public static final class OnCancel {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(0) String topic) {
            cancelling(topic);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        static void exit() {
            cancelling(null);
        }
    }

    /** Runs after the constructor of {@code PartitionReassignmentRevert}. */
    public static final class OnRevert {
        @Advice.OnMethodExit
        static void exit(
                @Advice.Argument(0) Object registration, @Advice.FieldValue("replicas") List<Integer> replicas) {
            keep(registration, replicas);
        }
    }
}
