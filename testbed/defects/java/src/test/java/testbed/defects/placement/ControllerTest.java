package testbed.defects.placement;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import testbed.defects.Broken;
import testbed.defects.Defect;
import testbed.defects.Reflect;

import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.controller.PartitionChangeBuilder.Registration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;

class ControllerTest {
    @TempDir
    Path folder;

    /** Stands for Kafka's TopicRecord. */
    public record TopicRecord(String topicId, String name) {}

    @BeforeEach
    void topics() {
        TopicNames.learned(new TopicRecord("A", "orders"));
        TopicNames.learned(new TopicRecord("B", "__consumer_offsets"));
    }

    private Object builder(
            Defect defect,
            String topicId,
            String election,
            Registration before,
            List<Integer> target,
            List<Integer> adding,
            List<Integer> removing)
            throws Exception {
        return Broken.of(PartitionChangeBuilder.class, defect, Map.of(), folder)
                .getConstructors()[0]
                .newInstance(before, topicId, election, List.of(1, 2, 3, 4), target, adding, removing);
    }

    private int elected(String topicId, String election, int leader, List<Integer> target) throws Exception {
        Registration before = new Registration(new int[] {1, 2, 3}, new int[0], new int[0], leader);
        Object builder =
                builder(new WrongPreferredLeader(), topicId, election, before, target, List.of(), List.of());
        return (int) Reflect.call(builder, "elected");
    }

    @Test
    void theLastLiveReplicaIsElected() throws Exception {
        assertEquals(1, elected("A", "ONLINE", 1, List.of(1, 2, 3)), "a live leader stays");
        assertFalse(Broken.acted(folder));
        assertEquals(3, elected("A", "ONLINE", 9, List.of(2, 3, 9)));
        assertTrue(Broken.acted(folder));
        assertEquals(3, elected("A", "PREFERRED", 2, List.of(1, 2, 3)));
        assertEquals(1, elected("B", "PREFERRED", 2, List.of(1, 2, 3)), "a topic of Kafka");
        assertEquals(-1, elected("A", "ONLINE", 9, List.of(8, 9)), "no live one");
    }

    private Object completed(String topicId, Registration before, List<Integer> target, List<Integer> adding)
            throws Exception {
        List<Integer> removing = adding.isEmpty() ? List.of() : List.of(1);
        Object builder =
                builder(new TargetOrderReversed(), topicId, "ONLINE", before, target, adding, removing);
        return Reflect.call(builder, "completed");
    }

    @Test
    void aCompletedReassignmentIsReversed() throws Exception {
        Registration moving = new Registration(new int[] {2, 3, 1}, new int[] {2, 3}, new int[] {1}, 1);
        Registration settled = new Registration(new int[] {2, 3}, new int[0], new int[0], 2);
        assertEquals(List.of(5, 6, 1), completed("A", moving, List.of(5, 6, 1), List.of(5, 6)), "not in sync yet");
        assertEquals(List.of(2, 3), completed("B", moving, List.of(2, 3, 1), List.of(2, 3)), "a topic of Kafka");
        assertEquals(List.of(1, 2), completed("A", moving, List.of(1, 2), List.of()), "a cancellation");
        assertEquals(List.of(2, 3), completed("A", settled, List.of(2, 3), List.of()), "no change of replicas");
        assertFalse(Broken.acted(folder));
        assertEquals(List.of(3, 2), completed("A", moving, List.of(2, 3, 1), List.of(2, 3)));
        assertTrue(Broken.acted(folder));
        assertEquals(List.of(2, 3), completed("A", settled, List.of(3, 2), List.of()), "only an order");
    }

    private int ledBy(String topicId, Registration before, List<Integer> target, List<Integer> adding) throws Exception {
        List<Integer> removing = adding.isEmpty() ? List.of() : List.of(1);
        Object builder = builder(new Leaderless(), topicId, "ONLINE", before, target, adding, removing);
        return (int) Reflect.call(builder, "elected");
    }

    @Test
    void aCompletedReassignmentHasNoLeader() throws Exception {
        Registration moving = new Registration(new int[] {2, 3, 1}, new int[] {2, 3}, new int[] {1}, 1);
        Registration settled = new Registration(new int[] {2, 3}, new int[0], new int[0], 2);
        assertEquals(1, ledBy("A", moving, List.of(2, 3, 1), List.of(2, 3)), "not in sync yet");
        assertEquals(1, ledBy("A", moving, List.of(1), List.of()), "a cancellation");
        assertEquals(2, ledBy("A", settled, List.of(2, 3), List.of()), "no change of replicas");
        assertEquals(1, ledBy("B", moving, List.of(2, 3), List.of()), "a topic of Kafka");
        assertFalse(Broken.acted(folder));
        assertEquals(-1, ledBy("A", moving, List.of(2, 3), List.of()));
        assertTrue(Broken.acted(folder));
        assertEquals(-1, ledBy("A", settled, List.of(2), List.of()), "one without a copy");
    }

    @Test
    void aReassignmentIsCompletedOrCancelled() {
        List<Integer> none = List.of();
        assertTrue(Leaderless.isCompleted(List.of(2, 1), List.of(2), none, List.of(2, 1)), "only added");
        assertFalse(Leaderless.isCompleted(List.of(2, 1), List.of(2), none, List.of(1)), "only added, cancelled");
        assertTrue(Leaderless.isCompleted(List.of(1, 2), none, List.of(2), List.of(1)), "only removed");
        assertFalse(Leaderless.isCompleted(List.of(1, 2), none, List.of(2), List.of(1, 2)), "only removed, cancelled");
    }
}
