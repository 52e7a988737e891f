package testbed.defects.throttle;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Parameter;
import testbed.defects.Settings;
import testbed.defects.Target;

import net.bytebuddy.asm.Advice;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** A defect that counts too few bytes, for one of the broker's two quotas. */
public abstract class Leak implements Defect {
    static final String MANAGER = "kafka.server.ReplicationQuotaManager";

    private static final Parameter SHARE = Parameter.number("share", 0.05, 0, 1);
    private static final Map<String, Leak> BEGUN = new ConcurrentHashMap<>();
    private static final long NOTED_BYTES = 1024;

    private final String type;
    private double share;
    private Effect effect;
    private double rest;
    private long total;

    /** Keeps Kafka's name of the quota: {@code LeaderReplication} or {@code FollowerReplication}. */
    Leak(String type) {
        this.type = type;
    }

    @Override
    public List<Parameter> parameters() {
        return List.of(SHARE);
    }

    @Override
    public List<Target> targets() {
        return List.of(Target.of(OnRecord.class).in(MANAGER, "record", "long"));
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        this.share = settings.number(SHARE.name());
        this.effect = effect;
        BEGUN.put(type, this);
    }

    /** Returns the bytes that are counted. */
    public static long counted(long bytes, Object replicationType) {
        Leak leak = BEGUN.get(replicationType.toString());
        return leak == null || bytes <= 0 ? bytes : leak.counted(bytes);
    }

    // Fractions add up: many small fetches leak as much as a large one.
    private synchronized long counted(long bytes) {
        rest += bytes * share;
        long leaked = (long) rest;
        rest -= leaked;
        total += leaked;
        // Answers without records count, too, with some bytes each: they are no leak worth a note.
        if (total >= NOTED_BYTES) {
            effect.acted("%d bytes not counted".formatted(total));
        }
        return bytes - leaked;
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
