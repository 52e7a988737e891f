package testbed.defects;

/** Which topics defects act on. */
public final class Topics {
    private Topics() {}

    /** Returns whether it is a topic of a user, not one of Kafka itself. */
    public static boolean isOfUser(String topic) {
        return !topic.startsWith("__");
    }
}
