package testbed.tiered;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import software.amazon.awssdk.awscore.retry.AwsRetryStrategy;
import software.amazon.awssdk.core.ResponseInputStream;
import software.amazon.awssdk.core.checksums.RequestChecksumCalculation;
import software.amazon.awssdk.core.checksums.ResponseChecksumValidation;
import software.amazon.awssdk.core.exception.SdkException;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.retries.api.BackoffStrategy;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.S3Configuration;
import software.amazon.awssdk.services.s3.model.CompletedPart;
import software.amazon.awssdk.services.s3.model.GetObjectResponse;
import software.amazon.awssdk.services.s3.model.MultipartUpload;
import software.amazon.awssdk.services.s3.model.ObjectIdentifier;
import software.amazon.awssdk.services.s3.model.S3Error;

/** One bucket of an object store: every request the manager makes, each with bounded time and bounded attempts. */
final class Store implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Store.class);
    private static final String BYTES = "application/octet-stream";

    private final S3Client s3;
    private final String bucket;
    private final int partBytes;

    Store(Settings settings) {
        bucket = settings.bucket;
        partBytes = settings.partBytes;
        BackoffStrategy backoff = BackoffStrategy.exponentialDelay(settings.backoff, settings.backoffMax);
        s3 = S3Client.builder()
                .endpointOverride(settings.endpoint)
                .region(Region.of(settings.region))
                .credentialsProvider(Credentials.read(settings.credentialsFile))
                .httpClientBuilder(UrlConnectionHttpClient.builder()
                        .connectionTimeout(settings.connectTimeout)
                        .socketTimeout(settings.socketTimeout))
                .serviceConfiguration(S3Configuration.builder()
                        .pathStyleAccessEnabled(true)
                        // A whole body is signed as one: every S3 can read that, and checks it by its SHA-256.
                        .chunkedEncodingEnabled(false)
                        .build())
                .requestChecksumCalculation(RequestChecksumCalculation.WHEN_REQUIRED)
                .responseChecksumValidation(ResponseChecksumValidation.WHEN_REQUIRED)
                .overrideConfiguration(change -> change.apiCallAttemptTimeout(settings.attemptTimeout)
                        .apiCallTimeout(settings.callTimeout)
                        .retryStrategy(AwsRetryStrategy.standardRetryStrategy().toBuilder()
                                .maxAttempts(settings.maxAttempts)
                                .backoffStrategy(backoff)
                                .throttlingBackoffStrategy(backoff)
                                // It would give up early for all partitions after an outage that concerned all of them.
                                .circuitBreakerEnabled(false)
                                .build()))
                .build();
    }

    /** Uploads a file, in parts when it is large. Overwrites. */
    void put(String key, Path file) throws IOException {
        long size = Files.size(file);
        if (size <= partBytes) {
            s3.putObject(request -> request.bucket(bucket).key(key), RequestBody.fromFile(file));
        } else {
            putInParts(key, file, size);
        }
    }

    /** Uploads what is left in a buffer, which is not moved on. Overwrites. */
    void put(String key, ByteBuffer content) {
        s3.putObject(request -> request.bucket(bucket).key(key), RequestBody.fromByteBuffer(content.duplicate()));
    }

    private void putInParts(String key, Path file, long size) {
        String upload = s3.createMultipartUpload(request -> request.bucket(bucket).key(key)).uploadId();
        try {
            List<CompletedPart> parts = new ArrayList<>();
            for (long at = 0; at < size; at += partBytes) {
                long from = at;
                long length = Math.min(partBytes, size - at);
                int number = parts.size() + 1;
                // Opened anew for each attempt, and read from the disk: ten copiers with a part each in memory are
                // more than a small broker has.
                RequestBody body = RequestBody.fromContentProvider(() -> slice(file, from, length), length, BYTES);
                String tag = s3.uploadPart(
                                request -> request.bucket(bucket).key(key).uploadId(upload).partNumber(number), body)
                        .eTag();
                parts.add(CompletedPart.builder().partNumber(number).eTag(tag).build());
            }
            s3.completeMultipartUpload(request -> request.bucket(bucket).key(key).uploadId(upload)
                    .multipartUpload(done -> done.parts(parts)));
        } catch (RuntimeException error) {
            // Parts of an upload that is not completed fill the store, and no listing of objects shows them.
            abort(key, upload);
            throw error;
        }
    }

    private static InputStream slice(Path file, long from, long length) {
        try {
            FileChannel channel = FileChannel.open(file);
            try {
                channel.position(from);
                return new Bounded(Channels.newInputStream(channel), length);
            } catch (IOException error) {
                channel.close();
                throw error;
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** Ends uploads in parts that were begun for this key and not completed. */
    void abortUploads(String key) {
        for (MultipartUpload each : s3.listMultipartUploads(request -> request.bucket(bucket).prefix(key)).uploads()) {
            if (key.equals(each.key())) {
                abort(key, each.uploadId());
            }
        }
    }

    private void abort(String key, String upload) {
        // Kafka interrupts a copy that it no longer wants; tidying up comes first all the same.
        boolean interrupted = Thread.interrupted();
        try {
            s3.abortMultipartUpload(request -> request.bucket(bucket).key(key).uploadId(upload));
        } catch (SdkException error) {
            LOG.info("The unfinished upload of {} stays in the store: {}", key, error.getMessage());
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Bytes <code>from</code> to <code>to</code> (both inclusive) of an object; abort it when not read to its end. */
    ResponseInputStream<GetObjectResponse> open(String key, long from, long to) {
        return s3.getObject(request -> request.bucket(bucket).key(key).range("bytes=" + from + "-" + to));
    }

    /** A whole object, which is small. */
    byte[] read(String key) {
        return s3.getObjectAsBytes(request -> request.bucket(bucket).key(key)).asByteArray();
    }

    /** Deletes; objects that are not there (any more) are no error. Throws IOException naming what was refused. */
    void delete(List<String> keys) throws IOException {
        List<ObjectIdentifier> doomed =
                keys.stream().map(key -> ObjectIdentifier.builder().key(key).build()).toList();
        List<S3Error> errors = s3.deleteObjects(request -> request.bucket(bucket)
                        .delete(what -> what.objects(doomed).quiet(true)))
                .errors();
        List<String> refused = errors.stream()
                .filter(error -> !"NoSuchKey".equals(error.code()))
                .map(error -> error.key() + ": " + error.code())
                .toList();
        if (!refused.isEmpty()) {
            throw new IOException("the store did not delete " + String.join(", ", refused));
        }
    }

    @Override
    public void close() {
        s3.close();
    }
}
