package testbed.tiered;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.config.ConfigException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SettingsTest {
    static Map<String, Object> given(String... more) {
        Map<String, Object> all = new HashMap<>(
                Map.of("endpoint", "http://198.19.0.14:9000", "bucket", "b", "credentials.file", "/etc/c"));
        for (int at = 0; at < more.length; at += 2) {
            all.put(more[at], more[at + 1]);
        }
        return all;
    }

    @Test
    void whatKafkaAddsIsNotUnknown() {
        assertEquals("b", new Settings(given("broker.id", "1", "part.bytes", "6000000")).bucket);
    }

    @Test
    void anUnknownPropertyIsNamed() {
        ConfigException error = assertThrows(ConfigException.class, () -> new Settings(given("buket", "x", "z", "y")));
        assertTrue(error.getMessage().contains("buket, z; there are"), error.getMessage());
    }

    @Test
    void whatMustBeThereIsAskedFor() {
        Map<String, Object> without = given();
        without.remove("bucket");
        ConfigException error = assertThrows(ConfigException.class, () -> new Settings(without));
        assertTrue(error.getMessage().contains("\"bucket\""), error.getMessage());
    }

    @ParameterizedTest
    @CsvSource({
        "endpoint, 198.19.0.14:9000", "endpoint, ftp://h/", "endpoint, 'http://a b'", "bucket, ''", "prefix, a",
        "prefix, /a/", "part.bytes, 5242879", "max.attempts, 0", "backoff.max.ms, 99", "socket.timeout.ms, soon",
    })
    void whatIsWrongIsRefusedByName(String name, String value) {
        ConfigException error = assertThrows(ConfigException.class, () -> new Settings(given(name, value)));
        assertTrue(error.getMessage().contains(name), error.getMessage());
    }

    @Test
    void aSecretInTheEndpointIsNotTold() {
        ConfigException error =
                assertThrows(ConfigException.class, () -> new Settings(given("endpoint", "http://me:hush@h:9000")));
        assertFalse(error.getMessage().contains("hush"), error.getMessage());
    }

    @Test
    void theCredentialsFile(@TempDir Path folder) throws IOException {
        Path file = Files.writeString(folder.resolve("c"), "access_key=who\nsecret_key=hush=x\\y\n");
        var found = Credentials.read(file).resolveCredentials();
        assertEquals("who", found.accessKeyId());
        assertEquals("hush=x\\y", found.secretAccessKey());
        Files.writeString(file, "access_key=\nsecret_key=hush\n");
        ConfigException error = assertThrows(ConfigException.class, () -> Credentials.read(file));
        assertTrue(error.getMessage().contains("has no line access_key="), error.getMessage());
        assertFalse(error.getMessage().contains("hush"), error.getMessage());
        assertThrows(ConfigException.class, () -> Credentials.read(folder.resolve("none")));
    }
}
