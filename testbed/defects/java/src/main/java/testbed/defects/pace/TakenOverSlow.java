package testbed.defects.pace;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Kafka;
import testbed.defects.Parameter;
import testbed.defects.Reads;
import testbed.defects.Reflect;
import testbed.defects.Settings;
import testbed.defects.Target;
import testbed.defects.Topics;

import net.bytebuddy.asm.Advice;

import org.apache.kafka.common.TopicPartition;

import java.util.List;

/** A leader that took a partition over waits before each append: the cluster stays slow after a move. */
public final class TakenOverSlow implements Defect {
    private static volatile long ms;
    private static volatile Effect effect;

    @Override
    public List<Parameter> parameters() {
        return List.of(Parameter.whole("ms", 100, 0, 60_000));
    }

    @Override
    public List<Target> targets() {
        return List.of(AppendSlow.target(OnAppend.class));
    }

    @Override
    public Reads reads() {
        return Reads.nothing().of(Kafka.LOG, "topicPartition");
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        ms = settings.whole("ms");
        TakenOverSlow.effect = effect;
    }

    /** Waits if a client's records come to a leader that is not the partition's first. */
    public static void delay(Object log, Object origin, Object[] arguments) {
        if (ms <= 0 || !origin.toString().equals("CLIENT") || epoch(arguments) <= 0) {
            return;
        }
        TopicPartition partition = (TopicPartition) Reflect.call(log, "topicPartition");
        if (Topics.isOfUser(partition.topic())) {
            Fetches.pause(ms);
            effect.acted("an append to %s in leader epoch %d waited %d ms".formatted(partition, epoch(arguments), ms));
        }
    }

    // The leader's epoch is the only int among the arguments. Releases have it in different places.
    static int epoch(Object[] arguments) {
        for (Object each : arguments) {
            if (each instanceof Integer epoch) {
                return epoch;
            }
        }
        return -1;
    }

    /** Runs before {@code UnifiedLog.append}, which takes its lock later. */
    public static final class OnAppend {
        @Advice.OnMethodEnter
        static void enter(
                @Advice.This Object log, @Advice.Argument(1) Object origin, @Advice.AllArguments Object[] arguments) {
            delay(log, origin, arguments);
        }
    }
}
