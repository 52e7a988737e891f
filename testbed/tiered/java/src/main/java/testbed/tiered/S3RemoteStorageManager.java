package testbed.tiered;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import software.amazon.awssdk.core.exception.AbortedException;
import software.amazon.awssdk.core.exception.SdkException;
import software.amazon.awssdk.services.s3.model.NoSuchKeyException;

/** KIP-405's remote storage on an S3 object store: a segment is up to six objects, see {@link Keys}. */
public final class S3RemoteStorageManager implements RemoteStorageManager {
    private static final Logger LOG = LoggerFactory.getLogger(S3RemoteStorageManager.class);

    private Settings settings;
    private Store store;

    @Override
    public void configure(Map<String, ?> configs) {
        settings = new Settings(configs);
        store = new Store(settings);
        LOG.info(
                "Remote storage: bucket {} at {}, keys begin with '{}'",
                settings.bucket, settings.endpoint, settings.prefix);
    }

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata segment, LogSegmentData data)
            throws RemoteStorageException {
        Keys keys = keys(segment);
        attempt("copy", segment, () -> {
            store.put(keys.index(IndexType.OFFSET), data.offsetIndex());
            store.put(keys.index(IndexType.TIMESTAMP), data.timeIndex());
            if (data.transactionIndex().isPresent()) {
                store.put(keys.index(IndexType.TRANSACTION), data.transactionIndex().get());
            }
            store.put(keys.index(IndexType.PRODUCER_SNAPSHOT), data.producerSnapshotIndex());
            store.put(keys.index(IndexType.LEADER_EPOCH), data.leaderEpochIndex());
            // Last: who sees the log sees a whole segment.
            store.put(keys.log(), data.logSegment());
            return null;
        });
        return Optional.empty();
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int startPosition)
            throws RemoteStorageException {
        return fetchLogSegment(segment, startPosition, Integer.MAX_VALUE);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int startPosition, int endPosition)
            throws RemoteStorageException {
        if (startPosition < 0 || endPosition < startPosition) {
            throw new IllegalArgumentException("no such part of a segment: " + startPosition + " to " + endPosition);
        }
        int last = Math.min(endPosition, segment.segmentSizeInBytes() - 1);
        return attempt(
                "read", segment, () -> new RangedStream(store, keys(segment).log(), settings, startPosition, last));
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata segment, IndexType type) throws RemoteStorageException {
        return attempt(
                "read the " + type + " index of", segment,
                () -> new ByteArrayInputStream(store.read(keys(segment).index(type))));
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata segment) throws RemoteStorageException {
        Keys keys = keys(segment);
        attempt("delete", segment, () -> {
            if (segment.segmentSizeInBytes() > settings.partBytes) {
                store.abortUploads(keys.log());
            }
            store.delete(keys.all());
            return null;
        });
    }

    @Override
    public void close() {
        if (store != null) {
            store.close();
        }
    }

    private Keys keys(RemoteLogSegmentMetadata segment) {
        return new Keys(settings.prefix, segment);
    }

    private interface Work<T> {
        T done() throws IOException;
    }

    /** Does it, and says in Kafka's terms what went wrong; the store's own words have no secrets in them. */
    private <T> T attempt(String what, RemoteLogSegmentMetadata segment, Work<T> work) throws RemoteStorageException {
        try {
            return work.done();
        } catch (SdkException error) {
            if (error instanceof AbortedException) {
                Thread.currentThread().interrupt();
            }
            String told = told(what, segment, error);
            if (error instanceof NoSuchKeyException) {
                throw new RemoteResourceNotFoundException(told, error);
            }
            throw new RemoteStorageException(told, error);
        } catch (IOException error) {
            throw new RemoteStorageException(told(what, segment, error), error);
        }
    }

    private static String told(String what, RemoteLogSegmentMetadata segment, Exception error) {
        return String.format(
                "cannot %s segment %s (offsets %d to %d) of %s: %s",
                what, segment.remoteLogSegmentId().id(), segment.startOffset(), segment.endOffset(),
                segment.topicIdPartition(), error.getMessage());
    }
}
