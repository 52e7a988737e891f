package testbed.defects.cost;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import testbed.defects.Effect;
import testbed.defects.Refused;
import testbed.defects.Settings;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.MetadataRequestData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;

class CostTest {
    private static final long SECOND = 1_000_000_000L;

    @Test
    void burnsItsShareOfWhatTheOthersUsed() {
        assertEquals(SECOND / 20, CpuBurn.due(0.5, SECOND, SECOND * 9 / 20));
        assertEquals(0, CpuBurn.due(0.5, SECOND, SECOND));
        assertEquals(SECOND / 5, CpuBurn.due(0.5, 100 * SECOND, 0), "at most ten steps at once");
    }

    @Test
    void countsNoReassignmentAndActsWhereThereIsOne(@TempDir Path folder) {
        System.setProperty(Effect.PROPERTY, folder.resolve("effects").toString());
        MovesUncounted uncounted = new MovesUncounted();
        Effect effect = new Effect(uncounted.name());
        uncounted.begin(Settings.of(uncounted, Map.of()), effect);
        assertFalse(MovesUncounted.counted(false));
        assertFalse(effect.hasActed());
        assertFalse(MovesUncounted.counted(true));
        assertTrue(effect.hasActed());
    }

    @Test
    void theRequestIsOneThatKafkaReads() {
        ByteBuffer sent = ByteBuffer.wrap(MetadataStampede.request(7));
        assertEquals(sent.remaining() - 4, sent.getInt());
        RequestHeaderData header = new RequestHeaderData(new ByteBufferAccessor(sent), (short) 1);
        assertEquals(3, header.requestApiKey());
        assertEquals(0, header.requestApiVersion());
        assertEquals(7, header.correlationId());
        assertEquals(List.of(), new MetadataRequestData(new ByteBufferAccessor(sent), (short) 0).topics());
        assertEquals(0, sent.remaining());
    }

    private static String listener(String... pairs) {
        Properties properties = new Properties();
        for (int at = 0; at < pairs.length; at += 2) {
            properties.setProperty(pairs[at], pairs[at + 1]);
        }
        return Listener.of(properties).getHostString() + " " + Listener.of(properties).getPort();
    }

    @Test
    void theListenerIsOneForClientsInClearText() {
        assertEquals(
                "127.0.0.1 9095",
                listener(
                        "listeners", "CONTROLLER://:9093,EXTERNAL://:9094, INTERNAL://0.0.0.0:9095",
                        "controller.listener.names", "CONTROLLER",
                        "listener.security.protocol.map",
                        "CONTROLLER:PLAINTEXT,EXTERNAL:SASL_SSL,INTERNAL:PLAINTEXT"));
        assertEquals("broker 9092", listener("listeners", "PLAINTEXT://broker:9092"));
        assertThrows(Refused.class, () -> listener("listeners", "SSL://broker:9092"));
        assertThrows(Refused.class, CostTest::listener);
        assertThrows(Refused.class, () -> Listener.of("kafka.Kafka"));
    }

    @Test
    void theFileNextToTheLogsHasNoMoreThanItMay(@TempDir Path folder) throws Exception {
        Path path = folder.resolve("scratch");
        WriteAmplified.Scratch scratch = new WriteAmplified.Scratch(path, 10);
        ByteBuffer bytes = ByteBuffer.wrap("abcd".getBytes(StandardCharsets.US_ASCII));
        assertEquals(8, scratch.write(bytes, 2));
        assertEquals("abcdabcd", Files.readString(path));
        assertEquals(4, bytes.remaining(), "the records stay as they are");
        assertEquals(4, scratch.write(bytes, 1));
        assertEquals("abcd", Files.readString(path), "it begins again");
        assertEquals(20, scratch.write(ByteBuffer.allocate(12), 2));
        assertEquals(10, Files.size(path));
    }

    /** What the defect sees of a log and of its records. */
    public record Log(TopicPartition topicPartition, File parentDirFile) {}

    /** As above. */
    public record Records(ByteBuffer buffer) {}

    @Test
    void whatIsAppendedToTopicsOfUsersIsWrittenAgain(@TempDir Path folder) throws Exception {
        System.setProperty(Effect.PROPERTY, folder.resolve("effects").toString());
        WriteAmplified defect = new WriteAmplified();
        Effect effect = new Effect(defect.name());
        defect.begin(Settings.of(defect, Map.of("times", "3")), effect);
        Path path = folder.resolve(".testbed-write-amplified");
        Records records = new Records(ByteBuffer.allocate(5));
        WriteAmplified.again(new Log(new TopicPartition("__consumer_offsets", 0), folder.toFile()), records);
        assertFalse(effect.hasActed());
        WriteAmplified.again(new Log(new TopicPartition("a", 0), folder.toFile()), records);
        assertEquals(15, Files.size(path));
        assertTrue(effect.hasActed());
    }
}
