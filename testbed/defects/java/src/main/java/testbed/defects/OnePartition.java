package testbed.defects;

import java.util.List;

/** The partitions that a defect acts on: those of one number, of one topic or of every topic of a user. */
public record OnePartition(int number, String topic) {
    /** What a defect's parameters say of them; an empty topic means every topic. */
    public static final List<Parameter> PARAMETERS =
            List.of(Parameter.whole("partition", 0, 0, Integer.MAX_VALUE), Parameter.text("topic", ""));

    /** Returns the partitions that the settings name. */
    public static OnePartition of(Settings settings) {
        return new OnePartition((int) settings.whole("partition"), settings.text("topic"));
    }

    /** Returns whether a partition is one of them. */
    public boolean is(String topic, int partition) {
        return partition == number && Topics.isOfUser(topic) && (this.topic.isEmpty() || this.topic.equals(topic));
    }
}
