package testbed.defects.throttle;

import testbed.defects.Effect;
import testbed.defects.Parameter;
import testbed.defects.Settings;

/** Counts too few bytes, for one of the broker's two quotas. */
final class Leak {
    static final Parameter SHARE = Parameter.number("share", 0.05, 0, 1);
    static final String MANAGER = "kafka.server.ReplicationQuotaManager";

    private final String type;
    private final double share;
    private final Effect effect;
    private double rest;

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
        }
        if (leaked > 0) {
            effect.acted("%d of %d bytes not counted".formatted(leaked, bytes));
        }
        return bytes - leaked;
    }
}
