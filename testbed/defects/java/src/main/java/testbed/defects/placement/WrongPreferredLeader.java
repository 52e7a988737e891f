package testbed.defects.placement;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Kafka;
import testbed.defects.Reads;
import testbed.defects.Reflect;
import testbed.defects.Settings;
import testbed.defects.Target;

import net.bytebuddy.asm.Advice;

import java.util.List;

/** The controller elects the last replica in sync as a new leader, not the first. */
public final class WrongPreferredLeader implements Defect {
    private static volatile Effect effect;

    @Override
    public List<Target> targets() {
        return List.of(
                TopicNames.target(),
                Target.of(OnElect.class).in("org.apache.kafka.controller.PartitionChangeBuilder", "electLeader"));
    }

    @Override
    public Reads reads() {
        return TopicNames.READS
                .of(Kafka.CHANGE_BUILDER, "partition", "election", "isValidNewLeader")
                .of(Kafka.CHANGE_BUILDER + "$ElectionResult", "node", "unclean")
                .of(Kafka.REGISTRATION, "leader");
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        WrongPreferredLeader.effect = effect;
    }

    /** Changes the result of an election that is clean and elects another leader, or the preferred one. */
    public static void elect(Object builder, Object result, List<Integer> replicas, Object topicId, int partition) {
        int elected = (int) Reflect.get(result, "node");
        int leader = (int) Reflect.get(Reflect.get(builder, "partition"), "leader");
        boolean preferred = Reflect.get(builder, "election").toString().equals("PREFERRED");
        if (elected < 0
                || (elected == leader && !preferred)
                || (boolean) Reflect.get(result, "unclean")
                || !TopicNames.isOfUser(topicId)) {
            return;
        }
        for (int at = replicas.size() - 1; at >= 0; at--) {
            int replica = replicas.get(at);
            if ((boolean) Reflect.call(builder, "isValidNewLeader", replica)) {
                if (replica != elected) {
                    Reflect.set(result, "node", replica);
                    effect.acted("%s: %d elected in place of %d, out of %s"
                            .formatted(TopicNames.partition(topicId, partition), replica, elected, replicas));
                }
                return;
            }
        }
    }

    /** Changes what {@code PartitionChangeBuilder.electLeader} returns. */
    public static final class OnElect {
        @Advice.OnMethodExit
        static void exit(
                @Advice.This Object builder,
                @Advice.Return Object result,
                @Advice.FieldValue("targetReplicas") List<Integer> replicas,
                @Advice.FieldValue("topicId") Object topicId,
                @Advice.FieldValue("partitionId") int partition) {
            elect(builder, result, replicas, topicId, partition);
        }
    }
}
