package testbed.tiered;

import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.NonEmptyString;
import org.apache.kafka.common.config.ConfigDef.Range;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.config.ConfigException;

/** What the manager is told by the broker's properties <code>rsm.config.…</code>, checked. */
final class Settings {
    static final String ENDPOINT = "endpoint";
    static final String BUCKET = "bucket";
    static final String PREFIX = "prefix";
    static final String REGION = "region";
    static final String CREDENTIALS_FILE = "credentials.file";
    static final String PART_BYTES = "part.bytes";
    static final String FETCH_BYTES = "fetch.bytes";
    static final String CONNECT_TIMEOUT_MS = "connect.timeout.ms";
    static final String SOCKET_TIMEOUT_MS = "socket.timeout.ms";
    static final String ATTEMPT_TIMEOUT_MS = "attempt.timeout.ms";
    static final String CALL_TIMEOUT_MS = "call.timeout.ms";
    static final String MAX_ATTEMPTS = "max.attempts";
    static final String BACKOFF_MS = "backoff.ms";
    static final String BACKOFF_MAX_MS = "backoff.max.ms";

    /** S3's lower limit for every part but the last one. */
    static final int LEAST_PART_BYTES = 5 << 20;

    /** What Kafka adds of its own to the properties with the prefix. */
    private static final Set<String> OF_KAFKA = Set.of("broker.id", "cluster.id", "node.id", "log.dir");

    private static final ConfigDef DEFINED = new ConfigDef()
            .define(ENDPOINT, Type.STRING, ConfigDef.NO_DEFAULT_VALUE, Settings::checkEndpoint, Importance.HIGH,
                    "Where the object store answers, such as http://198.19.0.14:9000.")
            .define(BUCKET, Type.STRING, ConfigDef.NO_DEFAULT_VALUE, new NonEmptyString(), Importance.HIGH,
                    "The bucket; it must exist.")
            .define(CREDENTIALS_FILE, Type.STRING, ConfigDef.NO_DEFAULT_VALUE, new NonEmptyString(), Importance.HIGH,
                    "A file with the lines access_key=… and secret_key=….")
            .define(PREFIX, Type.STRING, "", Settings::checkPrefix, Importance.MEDIUM,
                    "What every object's key begins with; empty, or ends with a slash.")
            .define(REGION, Type.STRING, "us-east-1", new NonEmptyString(), Importance.LOW,
                    "The region that requests are signed for.")
            .define(PART_BYTES, Type.INT, 8 << 20, Range.atLeast(LEAST_PART_BYTES), Importance.MEDIUM,
                    "A file larger than this is uploaded in parts of this size.")
            .define(FETCH_BYTES, Type.INT, (1 << 20) + (64 << 10), Range.atLeast(4096), Importance.MEDIUM,
                    "How much of a segment one request asks for at most. A consumer's fetch takes 1 MiB of a partition,"
                            + " and begins up to index.interval.bytes before the wanted offset.")
            .define(CONNECT_TIMEOUT_MS, Type.INT, 3_000, Range.atLeast(1), Importance.LOW,
                    "How long connecting may take.")
            .define(SOCKET_TIMEOUT_MS, Type.INT, 10_000, Range.atLeast(1), Importance.LOW,
                    "How long the store may be silent while an answer is read.")
            .define(ATTEMPT_TIMEOUT_MS, Type.INT, 20_000, Range.atLeast(1), Importance.LOW,
                    "How long one attempt at a request may take, its body included.")
            .define(CALL_TIMEOUT_MS, Type.INT, 60_000, Range.atLeast(1), Importance.LOW,
                    "How long a request may take with all its attempts.")
            .define(MAX_ATTEMPTS, Type.INT, 8, Range.between(1, 100), Importance.LOW,
                    "How often a request is tried, the first time included.")
            .define(BACKOFF_MS, Type.INT, 100, Range.atLeast(1), Importance.LOW,
                    "The wait before the second attempt; doubled for each further one, and random below that.")
            .define(BACKOFF_MAX_MS, Type.INT, 5_000, Range.atLeast(1), Importance.LOW,
                    "The longest wait between two attempts.");

    final URI endpoint;
    final String bucket;
    final String prefix;
    final String region;
    final Path credentialsFile;
    final int partBytes;
    final int fetchBytes;
    final Duration connectTimeout;
    final Duration socketTimeout;
    final Duration attemptTimeout;
    final Duration callTimeout;
    final int maxAttempts;
    final Duration backoff;
    final Duration backoffMax;

    /** Throws ConfigException, which names the property and says what is wrong with it. */
    Settings(Map<String, ?> properties) {
        Set<String> unknown = new TreeSet<>(properties.keySet());
        unknown.removeAll(DEFINED.names());
        unknown.removeAll(OF_KAFKA);
        if (!unknown.isEmpty()) {
            throw new ConfigException("unknown properties of the remote storage manager: " + String.join(", ", unknown)
                    + "; there are " + String.join(", ", new TreeSet<>(DEFINED.names())));
        }
        AbstractConfig read = new AbstractConfig(DEFINED, properties, false);
        endpoint = URI.create(read.getString(ENDPOINT));
        bucket = read.getString(BUCKET);
        prefix = read.getString(PREFIX);
        region = read.getString(REGION);
        credentialsFile = Path.of(read.getString(CREDENTIALS_FILE));
        partBytes = read.getInt(PART_BYTES);
        fetchBytes = read.getInt(FETCH_BYTES);
        connectTimeout = Duration.ofMillis(read.getInt(CONNECT_TIMEOUT_MS));
        socketTimeout = Duration.ofMillis(read.getInt(SOCKET_TIMEOUT_MS));
        attemptTimeout = Duration.ofMillis(read.getInt(ATTEMPT_TIMEOUT_MS));
        callTimeout = Duration.ofMillis(read.getInt(CALL_TIMEOUT_MS));
        maxAttempts = read.getInt(MAX_ATTEMPTS);
        backoff = Duration.ofMillis(read.getInt(BACKOFF_MS));
        backoffMax = Duration.ofMillis(read.getInt(BACKOFF_MAX_MS));
        if (backoffMax.compareTo(backoff) < 0) {
            throw new ConfigException(BACKOFF_MAX_MS, backoffMax.toMillis(), "must not be below " + BACKOFF_MS);
        }
    }

    private static void checkEndpoint(String name, Object value) {
        String text = (String) value;
        URI uri;
        try {
            uri = URI.create(text == null ? "" : text);
        } catch (IllegalArgumentException error) {
            throw new ConfigException(name, text, "must be a URL: " + error.getMessage());
        }
        if (uri.getHost() == null || !("http".equals(uri.getScheme()) || "https".equals(uri.getScheme()))) {
            throw new ConfigException(name, text, "must be a URL such as http://HOST:9000");
        }
        if (uri.getUserInfo() != null) {
            // Without the value: it has a secret in it.
            throw new ConfigException(name + ": no credentials in a URL; they belong into " + CREDENTIALS_FILE);
        }
    }

    private static void checkPrefix(String name, Object value) {
        String text = (String) value;
        if (text.startsWith("/") || !(text.isEmpty() || text.endsWith("/"))) {
            throw new ConfigException(name, text, "must be empty, or end with a slash and not begin with one");
        }
    }
}
