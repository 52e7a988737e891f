package testbed.defects;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** The values of a defect's parameters: those given, and the defaults of the others. */
public final class Settings {
    private final Map<String, String> values;

    private Settings(Map<String, String> values) {
        this.values = values;
    }

    /** Returns the settings of a defect; throws {@link Refused} at a parameter that it lacks or a value out of bounds. */
    public static Settings of(Defect defect, Map<String, String> given) {
        Map<String, String> values = new LinkedHashMap<>();
        List<Parameter> known = defect.parameters();
        for (Parameter each : known) {
            values.put(each.name(), each.fallback());
        }
        for (Map.Entry<String, String> each : given.entrySet()) {
            Parameter parameter = known.stream()
                    .filter(one -> one.name().equals(each.getKey()))
                    .findFirst()
                    .orElseThrow(() -> new Refused("%s has no parameter %s; it has %s"
                            .formatted(
                                    defect.name(),
                                    each.getKey(),
                                    known.isEmpty()
                                            ? "none"
                                            : known.stream()
                                                    .map(Parameter::name)
                                                    .collect(Collectors.joining(", ")))));
            values.put(each.getKey(), parameter.checked(defect.name(), each.getValue()));
        }
        return new Settings(values);
    }

    /** Returns the value of a number. */
    public double number(String name) {
        return Double.parseDouble(text(name));
    }

    /** Returns the value of a whole number. */
    public long whole(String name) {
        return Long.parseLong(text(name));
    }

    /** Returns the value as it was given. */
    public String text(String name) {
        String value = values.get(name);
        if (value == null) {
            throw new IllegalArgumentException("no parameter " + name + " was declared");
        }
        return value;
    }
}
