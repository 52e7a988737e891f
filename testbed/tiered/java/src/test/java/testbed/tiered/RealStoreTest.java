package testbed.tiered;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.InputStream;
import java.nio.file.Path;
import java.util.Arrays;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.io.TempDir;

/** Every call against the object store that the environment names; the testbed's container tests do. */
@EnabledIfEnvironmentVariable(named = "TESTBED_S3_ENDPOINT", matches = ".+")
class RealStoreTest {
    @TempDir
    Path folder;

    private final S3RemoteStorageManager manager = new S3RemoteStorageManager();

    @BeforeEach
    void start() {
        manager.configure(SettingsTest.given(
                "endpoint", System.getenv("TESTBED_S3_ENDPOINT"), "bucket", System.getenv("TESTBED_S3_BUCKET"),
                "credentials.file", System.getenv("TESTBED_S3_CREDENTIALS"), "prefix", "calls/", "part.bytes", "5242880"));
    }

    @AfterEach
    void stop() {
        manager.close();
    }

    private byte[] read(RemoteLogSegmentMetadata segment, int from, int to) throws Exception {
        try (InputStream in = manager.fetchLogSegment(segment, from, to)) {
            return in.readAllBytes();
        }
    }

    @Test
    void everyCall() throws Exception {
        for (int size : new int[] {1, 300_000, (5 << 20) * 2 + 4321}) {
            byte[] log = Segments.bytes(size);
            RemoteLogSegmentMetadata segment = Segments.metadata(size);
            var data = Segments.data(folder, log, size == 300_000);
            manager.copyLogSegmentData(segment, data);
            // As Kafka may: again, over what is there.
            manager.copyLogSegmentData(segment, data);
            assertArrayEquals(log, read(segment, 0, Integer.MAX_VALUE));
            assertArrayEquals(Arrays.copyOfRange(log, size / 3, size / 2 + 1), read(segment, size / 3, size / 2));
            try (InputStream in = manager.fetchLogSegment(segment, size - 1)) {
                assertArrayEquals(Arrays.copyOfRange(log, size - 1, size), in.readAllBytes());
            }
            try (InputStream in = manager.fetchIndex(segment, IndexType.OFFSET)) {
                assertArrayEquals(Segments.bytes(80), in.readAllBytes());
            }
            try (InputStream in = manager.fetchIndex(segment, IndexType.LEADER_EPOCH)) {
                assertArrayEquals("0\n1\n0 0\n".getBytes(), in.readAllBytes());
            }
            if (size == 300_000) {
                manager.fetchIndex(segment, IndexType.TRANSACTION).close();
            } else {
                assertThrows(
                        RemoteResourceNotFoundException.class,
                        () -> manager.fetchIndex(segment, IndexType.TRANSACTION));
            }
            manager.deleteLogSegmentData(segment);
            manager.deleteLogSegmentData(segment);
            assertThrows(RemoteResourceNotFoundException.class, () -> manager.fetchLogSegment(segment, 0));
            assertThrows(
                    RemoteResourceNotFoundException.class, () -> manager.fetchIndex(segment, IndexType.TIMESTAMP));
        }
    }

    @Test
    void anotherBucketIsAnErrorAndNotAMissingSegment() {
        var other = new S3RemoteStorageManager();
        other.configure(SettingsTest.given(
                "endpoint", System.getenv("TESTBED_S3_ENDPOINT"), "bucket", "there-is-no-such-bucket",
                "credentials.file", System.getenv("TESTBED_S3_CREDENTIALS")));
        RemoteStorageException error =
                assertThrows(RemoteStorageException.class, () -> other.fetchLogSegment(Segments.metadata(10), 0));
        assertFalse(error instanceof RemoteResourceNotFoundException, error.toString());
        other.close();
    }
}
