package testbed.defects.pace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import testbed.defects.Effect;
import testbed.defects.Settings;

import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.nio.file.Path;
import java.util.Map;

class TakenOverSlowTest {
    /** What the defect sees of a log. */
    public record Log(TopicPartition topicPartition) {}

    private static void append(String topic, String origin, int epoch) {
        Object[] arguments = {"records", origin, true, epoch, "request", (byte) 2, (short) 0};
        TakenOverSlow.delay(new Log(new TopicPartition(topic, 0)), origin, arguments);
    }

    @Test
    void onlyALaterLeaderWaits(@TempDir Path folder) {
        System.setProperty(Effect.PROPERTY, folder.resolve("effects").toString());
        Effect effect = new Effect("taken-over-slow");
        TakenOverSlow defect = new TakenOverSlow();
        defect.begin(Settings.of(defect, Map.of("ms", "30")), effect);
        append("a", "CLIENT", 0);
        append("a", "REPLICATION", 3);
        append("__consumer_offsets", "CLIENT", 3);
        assertFalse(effect.hasActed());
        long begunNs = System.nanoTime();
        append("a", "CLIENT", 3);
        assertTrue(System.nanoTime() - begunNs >= 30_000_000L);
        assertTrue(effect.hasActed());
    }

    @Test
    void theEpochIsTheOnlyInt() {
        assertEquals(3, TakenOverSlow.epoch(new Object[] {"records", "CLIENT", true, 3, (byte) 2}));
        assertEquals(4, TakenOverSlow.epoch(new Object[] {"records", "CLIENT", "version", true, 4, false}));
        assertEquals(-1, TakenOverSlow.epoch(new Object[] {(byte) 2, (short) 1}));
    }
}
