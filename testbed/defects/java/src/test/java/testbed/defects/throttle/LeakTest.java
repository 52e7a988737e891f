package testbed.defects.throttle;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import testbed.defects.Effect;
import testbed.defects.Settings;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.nio.file.Path;
import java.util.Map;

class LeakTest {
    @BeforeEach
    void file(@TempDir Path folder) {
        System.setProperty(Effect.PROPERTY, folder.resolve("effects").toString());
    }

    @Test
    void countsTheRestOfItsOwnQuotaAlone() {
        Effect effect = new Effect("leader-throttle-leak");
        Leak leak = new LeaderThrottleLeak();
        leak.begin(Settings.of(leak, Map.of("share", "0.25")), effect);
        assertEquals(100_000, Leak.counted(100_000, "AlterLogDirsReplication"));
        assertFalse(effect.hasActed());
        assertEquals(75_000, Leak.counted(100_000, "LeaderReplication"));
        assertTrue(effect.hasActed());
    }

    @Test
    void smallFetchesLeakAsMuchAsALargeOne() {
        Effect effect = new Effect("leader-throttle-leak");
        Leak leak = new LeaderThrottleLeak();
        leak.begin(Settings.of(leak, Map.of("share", "0.02")), effect);
        long counted = 0;
        for (int fetch = 0; fetch < 10_000; fetch++) {
            counted += Leak.counted(7, "LeaderReplication");
        }
        // 2 % of 70,000; floating-point sums may be one byte off.
        assertEquals(68_600, counted, 1);
    }
}
