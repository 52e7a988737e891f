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
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

class FlushEachAppendTest {
    /** What the defect sees of a log. */
    public record Log(TopicPartition topicPartition, List<Boolean> flushes) {
        /** Kafka's method. */
        public void flush(boolean forceFlushActiveSegment) {
            flushes.add(forceFlushActiveSegment);
        }
    }

    private final List<Boolean> flushes = new ArrayList<>();

    private void append(String topic) {
        FlushEachAppend.flush(new Log(new TopicPartition(topic, 0), flushes));
    }

    @Test
    void oneAppendInSoManyIsFlushed(@TempDir Path folder) {
        System.setProperty(Effect.PROPERTY, folder.resolve("effects").toString());
        FlushEachAppend defect = new FlushEachAppend();
        Effect effect = new Effect(defect.name());
        defect.begin(Settings.of(defect, Map.of("every", "2")), effect);
        append("a");
        append("__consumer_offsets");
        assertFalse(effect.hasActed());
        append("a");
        append("a");
        assertEquals(List.of(false), flushes);
        assertTrue(effect.hasActed());
        defect.begin(Settings.of(defect, Map.of()), effect);
        append("a");
        assertEquals(List.of(false, false), flushes, "each append by default");
    }
}
