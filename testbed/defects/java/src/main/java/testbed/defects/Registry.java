package testbed.defects;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Modifier;
import java.net.URISyntaxException;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** The defects: every class in a package of a kind that is one. */
final class Registry {
    private static final String SUFFIX = ".class";

    private Registry() {}

    /** Returns all defects, sorted by kind and name. */
    static List<Defect> all() {
        try {
            Path place = Path.of(Registry.class.getProtectionDomain().getCodeSource().getLocation().toURI());
            if (Files.isDirectory(place)) {
                return in(place);
            }
            try (FileSystem jar = FileSystems.newFileSystem(place)) {
                return in(jar.getPath("/"));
            }
        } catch (URISyntaxException error) {
            throw new IllegalStateException(error);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** Returns a defect; throws {@link Refused} when there is none of this name. */
    static Defect named(String name) {
        List<Defect> all = all();
        return all.stream()
                .filter(each -> each.name().equals(name))
                .findFirst()
                .orElseThrow(() -> new Refused("no defect %s; there are %s"
                        .formatted(name, all.stream().map(Defect::name).collect(Collectors.joining(", ")))));
    }

    private static List<Defect> in(Path root) throws IOException {
        Path home = root.resolve(Registry.class.getPackageName().replace('.', '/'));
        try (Stream<String> names = Stream.of(Kind.values()).flatMap(kind -> classes(home, kind))) {
            return names.map(Registry::load)
                    .filter(type -> Defect.class.isAssignableFrom(type) && !Modifier.isAbstract(type.getModifiers()))
                    .map(Registry::made)
                    .sorted(Comparator.comparing((Defect each) -> Kind.of(each.getClass()))
                            .thenComparing(Defect::name))
                    .toList();
        }
    }

    private static Stream<String> classes(Path home, Kind kind) {
        Path folder = home.resolve(kind.toString());
        if (!Files.isDirectory(folder)) {
            return Stream.of();
        }
        try (Stream<Path> files = Files.list(folder)) {
            return files.map(file -> file.getFileName().toString())
                    .filter(name -> name.endsWith(SUFFIX) && name.indexOf('$') < 0)
                    .map(name -> "%s.%s.%s"
                            .formatted(
                                    Registry.class.getPackageName(),
                                    kind,
                                    name.substring(0, name.length() - SUFFIX.length())))
                    .toList()
                    .stream();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    // Not initialised: a class that only serves a defect may need Kafka's.
    private static Class<?> load(String name) {
        try {
            return Class.forName(name, false, Registry.class.getClassLoader());
        } catch (ClassNotFoundException error) {
            throw new IllegalStateException(error);
        }
    }

    private static Defect made(Class<?> type) {
        try {
            return (Defect) type.getConstructor().newInstance();
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(type + " has no public constructor without arguments", error);
        }
    }
}
