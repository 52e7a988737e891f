package testbed.defects;

import java.util.ArrayList;
import java.util.List;

/** An advice, and the method of Kafka it goes into: one of several, as releases name it differently. */
public record Target(Class<?> advice, List<Method> methods) {
    /** Returns a target without a method. */
    public static Target of(Class<?> advice) {
        return new Target(advice, List.of());
    }

    /** Returns this target with one more name of its method; the first one that a release has is changed. */
    public Target in(String owner, String name, String... types) {
        List<Method> more = new ArrayList<>(methods);
        more.add(new Method(owner, name, List.of(types)));
        return new Target(advice, List.copyOf(more));
    }
}
