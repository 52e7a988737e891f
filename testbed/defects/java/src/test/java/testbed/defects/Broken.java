package testbed.defects;

import net.bytebuddy.ByteBuddy;
import net.bytebuddy.dynamic.DynamicType;
import net.bytebuddy.dynamic.loading.ClassLoadingStrategy;

import java.nio.file.Path;
import java.util.Map;

/** A class of the tests with a defect in it, as the agent changes Kafka's. */
public final class Broken {
    private Broken() {}

    /** Begins the defect and returns the changed class; its effects are noted in a file in {@code folder}. */
    public static Class<?> of(Class<?> type, Defect defect, Map<String, String> given, Path folder) throws Exception {
        System.setProperty(Effect.PROPERTY, folder.resolve("effects").toString());
        defect.begin(Settings.of(defect, given), new Effect(defect.name()));
        try (Release release = Release.running()) {
            DynamicType.Builder<?> changed = new ByteBuddy().decorate(type);
            for (Plan.Change change : Plan.of(defect, release).changes()) {
                if (change.method().owner().equals(type.getName())) {
                    changed = release.changed(changed, change);
                }
            }
            return changed.make()
                    .load(type.getClassLoader(), ClassLoadingStrategy.Default.CHILD_FIRST)
                    .getLoaded();
        }
    }

    /** Returns whether the defect noted an effect. */
    public static boolean acted(Path folder) throws Exception {
        Path file = folder.resolve("effects");
        return java.nio.file.Files.exists(file) && java.nio.file.Files.readString(file).contains(" acted ");
    }
}
