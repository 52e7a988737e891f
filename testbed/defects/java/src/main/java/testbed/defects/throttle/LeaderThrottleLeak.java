package testbed.defects.throttle;

/** The leader's throttle does not count a share of the bytes that it sends. */
public final class LeaderThrottleLeak extends Leak {
    /** Makes it for Kafka's quota. */
    public LeaderThrottleLeak() {
        super("LeaderReplication");
    }
}
