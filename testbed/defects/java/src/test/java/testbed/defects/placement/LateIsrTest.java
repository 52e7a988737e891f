package testbed.defects.placement;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import testbed.defects.Effect;
import testbed.defects.Settings;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.nio.file.Path;
import java.util.Map;

class LateIsrTest {
    private static final long SECOND = 1_000_000_000L;

    @BeforeEach
    void file(@TempDir Path folder) {
        System.setProperty(Effect.PROPERTY, folder.resolve("effects").toString());
    }

    @Test
    void waitsAfterEachTimeThatTheFollowerCaughtUp() {
        LateIsr late = new LateIsr();
        Effect effect = new Effect(late.name());
        late.begin(Settings.of(late, Map.of("seconds", "10")), effect);
        assertFalse(LateIsr.inSync("t-0 on 2", false, 0));
        assertFalse(effect.hasActed());
        assertFalse(LateIsr.inSync("t-0 on 2", true, SECOND));
        assertTrue(effect.hasActed());
        assertFalse(LateIsr.inSync("t-0 on 2", true, 10 * SECOND));
        assertTrue(LateIsr.inSync("t-0 on 2", true, 11 * SECOND));
        assertTrue(LateIsr.inSync("t-0 on 2", true, 12 * SECOND));
        assertFalse(LateIsr.inSync("t-0 on 2", false, 13 * SECOND));
        assertFalse(LateIsr.inSync("t-0 on 2", true, 14 * SECOND));
    }
}
