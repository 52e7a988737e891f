package testbed.tiered;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;

/** Segments as a broker would hand them over, of any bytes. */
final class Segments {
    static final TopicIdPartition PARTITION =
            new TopicIdPartition(Uuid.fromString("5VKnBQ3ZQ_mSxmVyvPFCcA"), new TopicPartition("orders", 3));

    private Segments() {}

    static byte[] bytes(int size) {
        byte[] content = new byte[size];
        new Random(size).nextBytes(content);
        return content;
    }

    static RemoteLogSegmentMetadata metadata(int size) {
        return metadata(size, Uuid.randomUuid());
    }

    static RemoteLogSegmentMetadata metadata(int size, Uuid id) {
        return new RemoteLogSegmentMetadata(
                new RemoteLogSegmentId(PARTITION, id), 1200, 1399, 1, 1, 1, size, Map.of(0, 0L));
    }

    static LogSegmentData data(Path folder, byte[] log, boolean transactions) throws IOException {
        return new LogSegmentData(
                Files.write(folder.resolve("log"), log),
                Files.write(folder.resolve("index"), bytes(80)),
                Files.write(folder.resolve("timeindex"), bytes(96)),
                transactions ? Optional.of(Files.write(folder.resolve("txnindex"), bytes(34))) : Optional.empty(),
                Files.write(folder.resolve("snapshot"), bytes(51)),
                ByteBuffer.wrap("0\n1\n0 0\n".getBytes(StandardCharsets.UTF_8)));
    }
}
