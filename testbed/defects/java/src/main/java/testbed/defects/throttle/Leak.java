package testbed.defects.throttle;

import testbed.defects.Effect;
import testbed.defects.Parameter;
import testbed.defects.Settings;

/** Counts too few bytes, for one of the broker's two quotas. */
final class Leak {
    static final Parameter SHARE = Parameter.number("share", 0.05, 0, 1);
    static final String MANAGER = "kafka.server.ReplicationQuotaManager";

    private static final long NOTED_BYTES = 1024;

    private final String type;
    private final double share;
    private final Effect effect;
    private double rest;
    private volatile long total;

    /** Keeps Kafka's name of the quota: {@code LeaderReplication} or {@code FollowerReplication}. */
    Leak(String type, Settings settings, Effect effect) {
        this.type = type;
        this.share = settings.number(SHARE.name());
        this.effect = effect;
    }

    /** Returns the bytes that are counted. Fractions add up: many small fetches leak as much as a large one. */
    long counted(long bytes, Object replicationType) {
        if (bytes <= 0 || !replicationType.toString().equals(type)) {
            return bytes;
        }
        long leaked;
        synchronized (this) {
            rest += bytes * share;
            leaked = (long) rest;
            rest -= leaked;
            total += leaked;
        }
        // Answers without records count, too, with some bytes each: they are no leak worth a note.
        if (total >= NOTED_BYTES) {
            effect.acted("%d bytes not counted".formatted(total));
        }
        return bytes - leaked;
    }
}
