package testbed.defects.throttle;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Parameter;
import testbed.defects.Settings;
import testbed.defects.Target;

import net.bytebuddy.asm.Advice;

import java.util.List;

/** The follower's throttle counts too few of the bytes that it gets. */
public final class FollowerThrottleLeak implements Defect {
    private static volatile Leak leak;

    @Override
    public String name() {
        return "follower-throttle-leak";
    }

    @Override
    public String summary() {
        return "The follower's throttle does not count this share of the bytes.";
    }

    @Override
    public List<Parameter> parameters() {
        return List.of(Leak.SHARE);
    }

    @Override
    public List<Target> targets() {
        return List.of(Target.of(OnRecord.class).in(Leak.MANAGER, "record", "long"));
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        leak = new Leak("FollowerReplication", settings, effect);
    }

    /** Returns the bytes that are counted. */
    public static long counted(long bytes, Object replicationType) {
        return leak.counted(bytes, replicationType);
    }

    /** Replaces the bytes that {@code ReplicationQuotaManager.record} gets. */
    public static final class OnRecord {
        @Advice.OnMethodEnter
        static void enter(
                @Advice.Argument(value = 0, readOnly = false) long bytes,
                @Advice.FieldValue("replicationType") Object replicationType) {
            bytes = counted(bytes, replicationType);
        }
    }
}
