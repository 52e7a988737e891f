package testbed.defects;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

class RegistryTest {
    static List<Defect> all() {
        return Registry.all();
    }

    @Test
    void namesAreDifferent() {
        Map<String, Long> counts = all().stream().collect(Collectors.groupingBy(Defect::name, Collectors.counting()));
        assertEquals(Map.of(), counts.entrySet().stream()
                .filter(each -> each.getValue() > 1)
                .collect(Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue)));
    }

    @ParameterizedTest
    @MethodSource("all")
    void everyDefaultIsWithinItsBounds(Defect defect) {
        for (Parameter each : defect.parameters()) {
            assertEquals(each.fallback(), each.checked(defect.name(), each.fallback()));
        }
    }
}
