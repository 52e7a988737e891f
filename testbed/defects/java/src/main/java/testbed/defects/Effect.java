package testbed.defects;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.atomic.AtomicBoolean;

/** Notes in a file that a defect was loaded, and the first time that it did something. */
public final class Effect {
    /** The system property that names the file. */
    public static final String PROPERTY = "testbed.defects.file";

    private static final String FILE = "/run/testbed-defects";

    private final String name;
    private final AtomicBoolean acted = new AtomicBoolean();

    /** Keeps the defect's name. */
    public Effect(String name) {
        this.name = name;
    }

    /** Notes that the defect is in force. */
    void loaded() {
        write("%s loaded %d".formatted(name, System.currentTimeMillis()));
    }

    /** Notes the first effect of the defect; the first call alone writes. */
    public void acted(String detail) {
        if (!acted.get() && acted.compareAndSet(false, true)) {
            write("%s acted %d %s".formatted(name, System.currentTimeMillis(), detail));
        }
    }

    /** Returns whether an effect was noted. */
    public boolean hasActed() {
        return acted.get();
    }

    // One write of one line in append mode: several defects, and several JVMs, share the file.
    private static void write(String line) {
        Path file = Path.of(System.getProperty(PROPERTY, FILE));
        try {
            Files.writeString(file, line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw Agent.halt("%s cannot be written (%s); name another file by -D%s".formatted(file, error, PROPERTY));
        }
    }
}
