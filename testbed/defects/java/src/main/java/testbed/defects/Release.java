package testbed.defects;

import net.bytebuddy.ByteBuddy;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.dynamic.DynamicType;
import net.bytebuddy.dynamic.scaffold.TypeValidation;
import net.bytebuddy.pool.TypePool;

import java.io.Closeable;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A Kafka release as class files, together with this jar's own: read, never loaded. */
record Release(ClassFileLocator files, TypePool types) implements Closeable {
    private Release(ClassFileLocator files) {
        this(files, TypePool.Default.of(files));
    }

    /** Returns the release on the class path of this JVM. */
    static Release running() {
        return new Release(ClassFileLocator.ForClassLoader.ofSystemLoader());
    }

    /** Returns the release whose jars are in a folder; throws {@link Refused} when it has none. */
    static Release in(Path libs) throws IOException {
        if (!Files.isDirectory(libs)) {
            throw new Refused(libs + " is no folder");
        }
        List<ClassFileLocator> found = new ArrayList<>();
        try (DirectoryStream<Path> jars = Files.newDirectoryStream(libs, "*.jar")) {
            for (Path jar : jars) {
                found.add(ClassFileLocator.ForJarFile.of(jar.toFile()));
            }
        }
        if (found.isEmpty()) {
            throw new Refused(libs + " has no jars");
        }
        // After the release's own: the JDK, and the advice.
        found.add(ClassFileLocator.ForClassLoader.of(Release.class.getClassLoader()));
        return new Release(new ClassFileLocator.Compound(found));
    }

    /** Returns whether a class has a method. */
    boolean has(Method method) {
        TypePool.Resolution found = types.describe(method.owner());
        return found.isResolved() && method.isIn(found.resolve());
    }

    /** Returns whether a class has a method or field of a name. */
    boolean has(Reads.Member member) {
        return member.owners().stream()
                .map(types::describe)
                .filter(TypePool.Resolution::isResolved)
                .map(TypePool.Resolution::resolve)
                .anyMatch(type -> type.getDeclaredMethods().stream()
                                .anyMatch(each -> each.getName().equals(member.name()))
                        || type.getDeclaredFields().stream()
                                .anyMatch(each -> each.getName().equals(member.name())));
    }

    /** Returns why the advice does not fit into the method, which may be there without a field that it needs; or "". */
    String problem(Plan.Change change) {
        TypeDescription type = types.describe(change.method().owner()).resolve();
        try {
            changed(new ByteBuddy().with(TypeValidation.DISABLED).decorate(type, files), change).make();
            return "";
        } catch (IllegalStateException | IllegalArgumentException error) {
            return error.toString();
        }
    }

    /** Returns a class with the advice in the method. */
    DynamicType.Builder<?> changed(DynamicType.Builder<?> type, Plan.Change change) {
        TypeDescription advice = types.describe(change.advice().getName()).resolve();
        return type.visit(Advice.to(advice, files).on(change.method()::matches));
    }

    @Override
    public void close() throws IOException {
        files.close();
    }
}
