package testbed.tiered;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The manager against a store in this process that has troubles. */
class ManagerTest {
    @TempDir
    Path folder;

    private final S3RemoteStorageManager manager = new S3RemoteStorageManager();
    private FakeStore store;

    @BeforeEach
    void start() throws IOException {
        store = new FakeStore();
        Path credentials = Files.writeString(folder.resolve("credentials"), "access_key=who\nsecret_key=hush\n");
        manager.configure(SettingsTest.given(
                "endpoint", store.endpoint(), "bucket", FakeStore.BUCKET, "prefix", "a/",
                "credentials.file", credentials.toString(), "part.bytes", "5242880", "fetch.bytes", "65536",
                "socket.timeout.ms", "1000", "max.attempts", "4", "backoff.ms", "10"));
    }

    @AfterEach
    void stop() {
        manager.close();
        store.close();
    }

    private RemoteLogSegmentMetadata copied(byte[] log, boolean transactions) throws Exception {
        RemoteLogSegmentMetadata segment = Segments.metadata(log.length);
        manager.copyLogSegmentData(segment, Segments.data(folder, log, transactions));
        return segment;
    }

    private byte[] read(RemoteLogSegmentMetadata segment, int from) throws Exception {
        try (InputStream in = manager.fetchLogSegment(segment, from)) {
            return in.readAllBytes();
        }
    }

    @Test
    void whatIsCopiedIsThere() throws Exception {
        byte[] log = Segments.bytes(200_000);
        RemoteLogSegmentMetadata segment = copied(log, true);
        String stem = "a/orders-5VKnBQ3ZQ_mSxmVyvPFCcA/3/00000000000000001200-" + segment.remoteLogSegmentId().id();
        List<String> keys = List.of(".epochs", ".index", ".log", ".snapshot", ".timeindex", ".txnindex");
        assertEquals(keys.stream().map(suffix -> stem + suffix).toList(), List.copyOf(store.objects.keySet()));
        assertArrayEquals(log, read(segment, 0));
        for (IndexType type : IndexType.values()) {
            byte[] expected = switch (type) {
                case OFFSET -> Segments.bytes(80);
                case TIMESTAMP -> Segments.bytes(96);
                case TRANSACTION -> Segments.bytes(34);
                case PRODUCER_SNAPSHOT -> Segments.bytes(51);
                case LEADER_EPOCH -> "0\n1\n0 0\n".getBytes();
            };
            try (InputStream in = manager.fetchIndex(segment, type)) {
                assertArrayEquals(expected, in.readAllBytes(), type.toString());
            }
        }
    }

    @Test
    void aLargeLogIsUploadedInParts() throws Exception {
        byte[] log = Segments.bytes((5 << 20) * 2 + 7);
        RemoteLogSegmentMetadata segment = copied(log, false);
        assertEquals(3, store.count("PUT partNumber&uploadId"));
        assertTrue(store.uploads.isEmpty());
        assertArrayEquals(log, read(segment, 0));
    }

    @Test
    void aPartThatFailsIsSentAgainAndAnUploadThatFailsIsEnded() throws Exception {
        byte[] log = Segments.bytes((5 << 20) + 7);
        RemoteLogSegmentMetadata segment = Segments.metadata(log.length);
        var data = Segments.data(folder, log, false);
        // Four small objects and the begin of the upload go well; then one part has two troubles.
        store.next(wellThen(5, FakeStore.Trouble.BUSY, FakeStore.Trouble.SILENT));
        manager.copyLogSegmentData(segment, data);
        assertArrayEquals(log, read(segment, 0));
        store.next(wellThen(5, busy(4)));
        RemoteLogSegmentMetadata another = Segments.metadata(log.length);
        assertThrows(RemoteStorageException.class, () -> manager.copyLogSegmentData(another, data));
        assertTrue(store.uploads.isEmpty(), store.uploads.keySet().toString());
        assertEquals(1, store.objects.keySet().stream().filter(key -> key.endsWith(".log")).count());
    }

    @Test
    void partsOfASegment() throws Exception {
        byte[] log = Segments.bytes(200_000);
        RemoteLogSegmentMetadata segment = copied(log, false);
        store.drain();
        assertArrayEquals(Arrays.copyOfRange(log, 150_000, 200_000), read(segment, 150_000));
        assertEquals(List.of("GET bytes=150000-199999"), store.drain());
        try (InputStream in = manager.fetchLogSegment(segment, 10, 100_000)) {
            assertArrayEquals(Arrays.copyOfRange(log, 10, 100_001), in.readAllBytes());
        }
        assertEquals(List.of("GET bytes=10-65545", "GET bytes=65546-100000"), store.drain());
        try (InputStream in = manager.fetchLogSegment(segment, 199_000, 900_000)) {
            assertEquals(1000, in.readAllBytes().length);
        }
        try (InputStream in = manager.fetchLogSegment(segment, 200_000)) {
            assertEquals(-1, in.read());
        }
        assertThrows(IllegalArgumentException.class, () -> manager.fetchLogSegment(segment, -1));
        assertThrows(IllegalArgumentException.class, () -> manager.fetchLogSegment(segment, 5, 4));
    }

    @Test
    void whatIsNotReadIsNotAskedFor() throws Exception {
        RemoteLogSegmentMetadata segment = copied(Segments.bytes(2_000_000), false);
        store.drain();
        try (InputStream in = manager.fetchLogSegment(segment, 0)) {
            assertEquals(70_000, in.readNBytes(70_000).length);
        }
        assertEquals(List.of("GET bytes=0-65535", "GET bytes=65536-131071"), store.drain());
    }

    @Test
    void aBodyThatBreaksOffIsGoneOnWith() throws Exception {
        byte[] log = Segments.bytes(60_000);
        RemoteLogSegmentMetadata segment = copied(log, false);
        store.drain();
        store.next(FakeStore.Trouble.CUT, FakeStore.Trouble.BUSY, FakeStore.Trouble.CUT, FakeStore.Trouble.SILENT);
        assertArrayEquals(log, read(segment, 0));
        List<String> seen = store.drain();
        assertEquals("GET bytes=0-59999", seen.get(0));
        assertEquals("GET bytes=30000-59999", seen.get(1));
        assertEquals("GET bytes=45000-59999", seen.get(seen.size() - 1));
    }

    @Test
    void aBodyThatNeverComesIsAnErrorAfterBoundedAttempts() throws Exception {
        RemoteLogSegmentMetadata segment = copied(Segments.bytes(60_000), false);
        store.drain();
        store.next(Collections.nCopies(4, FakeStore.Trouble.EMPTY).toArray(FakeStore.Trouble[]::new));
        IOException error = assertThrows(IOException.class, () -> read(segment, 0));
        assertTrue(error.getMessage().contains("at byte 0 of 60000"), error.getMessage());
        assertEquals(4, store.count("GET"));
    }

    @Test
    void aBusyOrSilentStoreIsAskedAgain() throws Exception {
        store.next(FakeStore.Trouble.BUSY, FakeStore.Trouble.SILENT, FakeStore.Trouble.BUSY);
        RemoteLogSegmentMetadata segment = copied(Segments.bytes(1000), false);
        assertEquals(5, store.objects.size());
        store.next(FakeStore.Trouble.CUT, FakeStore.Trouble.SILENT, FakeStore.Trouble.BUSY);
        try (InputStream in = manager.fetchIndex(segment, IndexType.OFFSET)) {
            assertArrayEquals(Segments.bytes(80), in.readAllBytes());
        }
    }

    @Test
    void aStoreThatStaysBusyIsAnErrorAfterBoundedAttempts() throws Exception {
        RemoteLogSegmentMetadata segment = Segments.metadata(1000);
        var data = Segments.data(folder, Segments.bytes(1000), false);
        store.next(busy(4));
        RemoteStorageException error =
                assertThrows(RemoteStorageException.class, () -> manager.copyLogSegmentData(segment, data));
        assertEquals(4, store.count("PUT"));
        String told = error.getMessage();
        assertTrue(told.contains("cannot copy segment") && told.contains("orders-3"), told);
        assertFalse(told.contains("hush") || told.contains("who"), told);
    }

    @Test
    void whatIsNotThereIsNotFound() throws Exception {
        RemoteLogSegmentMetadata segment = copied(Segments.bytes(1000), false);
        assertThrows(
                RemoteResourceNotFoundException.class, () -> manager.fetchIndex(segment, IndexType.TRANSACTION));
        RemoteLogSegmentMetadata never = Segments.metadata(1000);
        assertThrows(RemoteResourceNotFoundException.class, () -> manager.fetchLogSegment(never, 0));
        for (IndexType type : IndexType.values()) {
            assertThrows(RemoteResourceNotFoundException.class, () -> manager.fetchIndex(never, type));
        }
    }

    @Test
    void deletingTwiceIsNoError() throws Exception {
        RemoteLogSegmentMetadata segment = copied(Segments.bytes((5 << 20) + 1), true);
        RemoteLogSegmentMetadata another = copied(Segments.bytes(100), true);
        String key = new Keys("a/", segment).log();
        // As a broker leaves it that was killed in the middle.
        store.uploads.put(key + "#99", new java.util.TreeMap<>());
        store.uploads.put(key + "2#98", new java.util.TreeMap<>());
        store.next(FakeStore.Trouble.BUSY);
        manager.deleteLogSegmentData(segment);
        manager.deleteLogSegmentData(segment);
        assertEquals(List.of(key + "2#98"), List.copyOf(store.uploads.keySet()));
        assertEquals(List.copyOf(new java.util.TreeSet<>(new Keys("a/", another).all())), List.copyOf(store.objects.keySet()));
    }

    @Test
    void keysOfTwoSegmentsOfTheSameOffsetsDiffer() {
        assertNotEquals(new Keys("", Segments.metadata(1)).log(), new Keys("", Segments.metadata(1)).log());
    }

    private static FakeStore.Trouble[] busy(int times) {
        return Collections.nCopies(times, FakeStore.Trouble.BUSY).toArray(FakeStore.Trouble[]::new);
    }

    private static FakeStore.Trouble[] wellThen(int well, FakeStore.Trouble... then) {
        FakeStore.Trouble[] all = new FakeStore.Trouble[well + then.length];
        Arrays.fill(all, 0, well, FakeStore.Trouble.NONE);
        System.arraycopy(then, 0, all, well, then.length);
        return all;
    }
}
