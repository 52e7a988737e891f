package testbed.defects;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Writes JSON: this jar brings no library that another one in the broker could conflict with. */
final class Json {
    private Json() {}

    /** Returns a text, number, list or map as JSON. */
    static String of(Object value) {
        if (value instanceof Map<?, ?> map) {
            return map.entrySet().stream()
                    .map(each -> quoted(each.getKey().toString()) + ": " + of(each.getValue()))
                    .collect(Collectors.joining(", ", "{", "}"));
        }
        if (value instanceof List<?> list) {
            return list.stream().map(Json::of).collect(Collectors.joining(", ", "[", "]"));
        }
        if (value instanceof Number number) {
            return number(number.doubleValue());
        }
        return quoted(value.toString());
    }

    /** Returns a number without a fraction that is zero. */
    static String number(double value) {
        return value == Math.rint(value) && Math.abs(value) < 1e15 ? Long.toString((long) value) : Double.toString(value);
    }

    private static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char each : text.toCharArray()) {
            if (each == '"' || each == '\\') {
                quoted.append('\\').append(each);
            } else if (each < ' ') {
                quoted.append("\\u%04x".formatted((int) each));
            } else {
                quoted.append(each);
            }
        }
        return quoted.append('"').toString();
    }
}
