package testbed.defects;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.List;
import java.util.Map;

class SpecTest {
    @Test
    void severalDefectsWithParameters() {
        assertEquals(
                List.of(
                        new Spec("leader-throttle-leak", Map.of("share", "0.02")),
                        new Spec("late-isr", Map.of()),
                        new Spec("throttle-ignores-partition", Map.of("partition", "3", "topic", ""))),
                Spec.parse("leader-throttle-leak,share=0.02;late-isr;throttle-ignores-partition,partition=3,topic="));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", " ", ";", "a;", "a;a", "a,", "a,b", "a,=1", ",b=1", "a,b=1,b=2"})
    void refusesWhatIsNoSpec(String option) {
        assertThrows(Refused.class, () -> Spec.parse(option));
    }

    @Test
    void settingsAreThoseGivenAndTheDefaults() {
        Settings settings =
                Settings.of(Registry.named("throttle-ignores-partition"), Map.of("partition", "7"));
        assertEquals(7, settings.whole("partition"));
        assertEquals("", settings.text("topic"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "x", "NaN", "-0.1", "1.1", "Infinity"})
    void refusesASettingOutOfBounds(String value) {
        Defect leak = Registry.named("leader-throttle-leak");
        assertThrows(Refused.class, () -> Settings.of(leak, Map.of("share", value)));
    }

    @Test
    void refusesAnUnknownParameterAndAnUnknownDefect() {
        Defect leak = Registry.named("leader-throttle-leak");
        assertThrows(Refused.class, () -> Settings.of(leak, Map.of("part", "1")));
        assertThrows(Refused.class, () -> Registry.named("leak"));
    }
}
