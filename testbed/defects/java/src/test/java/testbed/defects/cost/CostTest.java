package testbed.defects.cost;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import testbed.defects.Refused;

import org.apache.kafka.common.message.MetadataRequestData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.junit.jupiter.api.Test;

import java.nio.ByteBuffer;
import java.util.List;
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
}
