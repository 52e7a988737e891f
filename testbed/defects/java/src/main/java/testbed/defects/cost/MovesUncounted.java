package testbed.defects.cost;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Kafka;
import testbed.defects.Settings;
import testbed.defects.Target;

import net.bytebuddy.asm.Advice;

import java.util.List;

/** The broker's metrics count no reassignment. */
public final class MovesUncounted implements Defect {
    private static volatile Effect effect;

    @Override
    public List<Target> targets() {
        return List.of(
                Target.of(OnAnswer.class).in(Kafka.PARTITION, "isReassigning"),
                Target.of(OnAnswer.class).in(Kafka.PARTITION, "isAddingReplica", "int"));
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        MovesUncounted.effect = effect;
    }

    /** Returns that no replica is being added; Kafka uses the answer in its metrics alone. */
    public static boolean counted(boolean adding) {
        if (adding) {
            effect.acted("a reassignment not counted");
        }
        return false;
    }

    /** Replaces the answers of {@code Partition.isReassigning} and {@code Partition.isAddingReplica}. */
    public static final class OnAnswer {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) boolean adding) {
            adding = counted(adding);
        }
    }
}
