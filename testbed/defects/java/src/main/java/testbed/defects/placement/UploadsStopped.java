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

import org.apache.kafka.common.TopicPartition;

import java.util.List;

/** A leader that took a tiered partition over uploads none of its segments. */
public final class UploadsStopped implements Defect {
    private static volatile Effect effect;

    @Override
    public List<Target> targets() {
        String method = "copyLogSegmentsToRemote";
        return List.of(Target.of(OnCopy.class)
                .in("org.apache.kafka.server.log.remote.storage.RemoteLogManager$RLMCopyTask", method, "UnifiedLog")
                .in("kafka.log.remote.RemoteLogManager$RLMCopyTask", method, "UnifiedLog"));
    }

    @Override
    public Reads reads() {
        return Reads.nothing().of(Kafka.LOG, "topicPartition", "latestEpoch");
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        UploadsStopped.effect = effect;
    }

    /** Returns whether the log's segments stay: those of a user's topic, with a leader that is not the first. */
    public static boolean stays(Object log) {
        TopicPartition partition = (TopicPartition) Reflect.call(log, "topicPartition");
        // Java's Optional or Scala's Option, by release: each writes the number.
        String epoch = Reflect.call(log, "latestEpoch").toString().replaceAll("\\D", "");
        if (!Topics.isOfUser(partition.topic()) || epoch.isEmpty() || Integer.parseInt(epoch) == 0) {
            return false;
        }
        effect.acted("no segment of %s uploaded in leader epoch %s".formatted(partition, epoch));
        return true;
    }

    /** Leaves {@code RLMCopyTask.copyLogSegmentsToRemote} at once. */
    public static final class OnCopy {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(@Advice.Argument(0) Object log) {
            return stays(log);
        }
    }
}
