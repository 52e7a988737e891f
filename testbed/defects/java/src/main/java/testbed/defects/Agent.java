package testbed.defects;

import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.DynamicType;
import net.bytebuddy.utility.JavaModule;

import java.lang.instrument.Instrumentation;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

import static net.bytebuddy.matcher.ElementMatchers.named;

/**
 * The Java agent: makes the broker wrong in the ways that its option names.
 *
 * <p>A broker that was asked to be wrong never runs unchanged: the JVM ends with {@link #EXIT} instead.
 */
public final class Agent {
    /** The JVM's exit code when a defect cannot be put in force. */
    public static final int EXIT = 3;

    private Agent() {}

    /** Puts the defects of the option in force, before Kafka's classes are loaded. */
    public static void premain(String option, Instrumentation instrumentation) {
        try {
            begin(option, instrumentation);
        } catch (Refused refused) {
            throw halt(refused.getMessage());
        } catch (RuntimeException | LinkageError error) {
            throw halt(error.toString());
        }
    }

    /** Ends the JVM after one line; returns nothing, so that a caller can write {@code throw halt(…)}. */
    public static Error halt(String why) {
        System.err.println("testbed-defects: " + why.replace('\n', ' '));
        System.err.flush();
        // Not exit: Kafka's shutdown hooks may wait for the thread that is in here.
        Runtime.getRuntime().halt(EXIT);
        return new Error(why);
    }

    private static void begin(String option, Instrumentation instrumentation) {
        Release release = Release.running();
        // A set: an advice that two of the defects share goes into a method once.
        Set<Plan.Change> changes = new LinkedHashSet<>();
        List<Effect> effects = new ArrayList<>();
        for (Spec spec : Spec.parse(option)) {
            Defect defect = Registry.named(spec.name());
            Settings settings = Settings.of(defect, spec.given());
            Plan plan = Plan.of(defect, release);
            if (!plan.missing().isEmpty()) {
                throw new Refused("%s: this Kafka has no %s".formatted(defect.name(), plan.missing().get(0)));
            }
            Effect effect = new Effect(defect.name());
            defect.begin(settings, effect);
            changes.addAll(plan.changes());
            effects.add(effect);
        }
        install(release, changes, instrumentation);
        effects.forEach(Effect::loaded);
    }

    private static void install(Release release, Set<Plan.Change> changes, Instrumentation instrumentation) {
        Map<String, List<Plan.Change>> byOwner = changes.stream()
                .collect(Collectors.groupingBy(change -> change.method().owner(), LinkedHashMap::new, Collectors.toList()));
        // A class that is loaded already would stay as it is.
        for (Class<?> loaded : instrumentation.getAllLoadedClasses()) {
            if (byOwner.containsKey(loaded.getName())) {
                throw new Refused(loaded.getName() + " was loaded before this agent");
            }
        }
        AgentBuilder builder = new AgentBuilder.Default()
                .disableClassFormatChanges()
                .with(new HaltOnError());
        for (Map.Entry<String, List<Plan.Change>> each : byOwner.entrySet()) {
            builder = builder.type(named(each.getKey()))
                    .transform((type, description, loader, module, domain) -> changed(release, type, description, each.getValue()));
        }
        builder.installOn(instrumentation);
    }

    private static DynamicType.Builder<?> changed(
            Release release, DynamicType.Builder<?> type, TypeDescription description, List<Plan.Change> changes) {
        DynamicType.Builder<?> changed = type;
        for (Plan.Change change : changes) {
            if (!change.method().isIn(description)) {
                throw new Refused("the class loaded has no " + change.method());
            }
            changed = release.changed(changed, change);
        }
        return changed;
    }

    private static final class HaltOnError extends AgentBuilder.Listener.Adapter {
        @Override
        public void onError(String name, ClassLoader loader, JavaModule module, boolean loaded, Throwable error) {
            throw halt("%s cannot be changed: %s".formatted(name, error));
        }
    }
}
