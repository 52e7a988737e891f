package testbed.defects.placement;

import testbed.defects.Reads;
import testbed.defects.Reflect;
import testbed.defects.Target;
import testbed.defects.Topics;

import net.bytebuddy.asm.Advice;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The names of topics in the controller, whose changes of partitions have the topic's id alone. */
public final class TopicNames {
    static final Reads READS =
            Reads.nothing().of("org.apache.kafka.common.metadata.TopicRecord", "topicId", "name");

    private static final Map<Object, String> NAMES = new ConcurrentHashMap<>();

    private TopicNames() {}

    /** Returns the target in which a controller, active or not, learns of a topic. */
    static Target target() {
        return Target.of(OnTopic.class)
                .in("org.apache.kafka.controller.ReplicationControlManager", "replay", "TopicRecord");
    }

    /** Keeps a topic's name. */
    public static void learned(Object record) {
        NAMES.put(Reflect.call(record, "topicId"), (String) Reflect.call(record, "name"));
    }

    /** Returns whether the id is one of a user's topic. */
    static boolean isOfUser(Object topicId) {
        String name = name(topicId);
        return name != null && Topics.isOfUser(name);
    }

    /** Returns the name of a topic; null when the controller has not learned of it. */
    static String name(Object topicId) {
        return NAMES.get(topicId);
    }

    /** Returns the name of a partition, as Kafka writes it. */
    static String partition(Object topicId, int partition) {
        return name(topicId) + "-" + partition;
    }

    /** Runs before {@code ReplicationControlManager.replay(TopicRecord)}. */
    public static final class OnTopic {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(0) Object record) {
            learned(record);
        }
    }
}
