package testbed.defects.throttle;

/** The follower's throttle does not count a share of the bytes that it gets. */
public final class FollowerThrottleLeak extends Leak {
    /** Makes it for Kafka's quota. */
    public FollowerThrottleLeak() {
        super("FollowerReplication");
    }
}
