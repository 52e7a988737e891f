package testbed.defects;

import java.util.List;
import java.util.Locale;

/**
 * One way in which a broker is wrong on purpose: a class with a public constructor without arguments, in the package of
 * its kind. The registry finds it there; nothing else lists it. The catalogue in Python has its summary for users.
 *
 * <p>Byte Buddy inlines the advice of a target into a class of Kafka. So an advice calls only public methods of public
 * classes of this jar.
 */
public interface Defect {
    /** Returns the defect's name, as in an agent's option: that of {@code LateIsr} is {@code late-isr}. */
    default String name() {
        return getClass().getSimpleName().replaceAll("(?<=.)(?=[A-Z])", "-").toLowerCase(Locale.ROOT);
    }

    /** Returns what can be set, with the defaults. */
    default List<Parameter> parameters() {
        return List.of();
    }

    /** Returns the methods of Kafka that it changes; empty when it acts from a thread of its own. */
    default List<Target> targets() {
        return List.of();
    }

    /** Returns what of Kafka it reads by name. */
    default Reads reads() {
        return Reads.nothing();
    }

    /** Keeps the settings, before any class of Kafka is loaded. Called once, only when the defect was asked for. */
    void begin(Settings settings, Effect effect);
}
