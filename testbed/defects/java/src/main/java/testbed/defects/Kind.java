package testbed.defects;

import java.util.Locale;

/** What a defect spoils. The last part of a defect's package names it. */
public enum Kind {
    THROTTLE,
    PACE,
    PLACEMENT,
    DATA,
    COST;

    static Kind of(Class<?> defect) {
        String name = defect.getPackageName();
        return valueOf(name.substring(name.lastIndexOf('.') + 1).toUpperCase(Locale.ROOT));
    }

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
