package testbed.defects;

/** A setting of a defect: a number between two bounds, a whole one, or a text. */
public record Parameter(String name, Type type, String fallback, double lowest, double highest) {
    /** What a value may be. */
    public enum Type {
        NUMBER,
        WHOLE,
        TEXT
    }

    /** Returns a parameter that takes any number from {@code lowest} to {@code highest}. */
    public static Parameter number(String name, double fallback, double lowest, double highest) {
        return new Parameter(name, Type.NUMBER, plain(fallback), lowest, highest);
    }

    /** Returns a parameter that takes a whole number from {@code lowest} to {@code highest}. */
    public static Parameter whole(String name, long fallback, long lowest, long highest) {
        return new Parameter(name, Type.WHOLE, Long.toString(fallback), lowest, highest);
    }

    /** Returns a parameter that takes any text without a comma or semicolon. */
    public static Parameter text(String name, String fallback) {
        return new Parameter(name, Type.TEXT, fallback, 0, 0);
    }

    /** Returns the value unchanged; throws {@link Refused} when the parameter does not take it. */
    String checked(String defect, String value) {
        if (type == Type.TEXT) {
            return value;
        }
        try {
            double number = type == Type.WHOLE ? Long.parseLong(value) : Double.parseDouble(value);
            // Not "outside the bounds": a NaN is neither below nor above them.
            if (number >= lowest && number <= highest) {
                return value;
            }
        } catch (NumberFormatException notOne) {
            // Refused below, in the same words as one out of bounds.
        }
        throw new Refused(
                "%s: %s=%s is not a %snumber from %s to %s"
                        .formatted(
                                defect,
                                name,
                                value,
                                type == Type.WHOLE ? "whole " : "",
                                plain(lowest),
                                plain(highest)));
    }

    /** Returns a number without a fraction that is zero. */
    private static String plain(double value) {
        return value == Math.rint(value) ? Long.toString((long) value) : Double.toString(value);
    }
}
