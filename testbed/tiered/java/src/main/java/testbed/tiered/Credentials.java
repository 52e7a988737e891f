package testbed.tiered;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.config.ConfigException;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentialsProvider;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;

/** The credentials' file: two lines, <code>access_key=…</code> and <code>secret_key=…</code>. */
final class Credentials {
    private static final String ACCESS_KEY = "access_key";
    private static final String SECRET_KEY = "secret_key";

    private Credentials() {}

    /** Throws ConfigException, which names the file and what it lacks, and tells nothing that is in it. */
    static AwsCredentialsProvider read(Path file) {
        Map<String, String> found = new HashMap<>();
        try {
            for (String line : Files.readAllLines(file)) {
                int at = line.indexOf('=');
                if (at > 0) {
                    found.put(line.substring(0, at).strip(), line.substring(at + 1).strip());
                }
            }
        } catch (IOException error) {
            throw new ConfigException(
                    Settings.CREDENTIALS_FILE, file, "cannot be read: " + error.getClass().getSimpleName());
        }
        for (String name : new String[] {ACCESS_KEY, SECRET_KEY}) {
            if (found.getOrDefault(name, "").isEmpty()) {
                throw new ConfigException(Settings.CREDENTIALS_FILE, file, "has no line " + name + "=…");
            }
        }
        return StaticCredentialsProvider.create(AwsBasicCredentials.create(found.get(ACCESS_KEY), found.get(SECRET_KEY)));
    }
}
