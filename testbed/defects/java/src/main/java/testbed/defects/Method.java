package testbed.defects;

import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;

import java.util.List;
import java.util.stream.Collectors;

/**
 * A method of Kafka: its class, its name and the simple names of its parameters' types.
 *
 * <p>Types are named without their package: Kafka moves classes between packages from release to release.
 */
public record Method(String owner, String name, List<String> types) {
    /** The name of every class's constructors. */
    public static final String CONSTRUCTOR = "<init>";

    boolean matches(MethodDescription method) {
        boolean named = name.equals(CONSTRUCTOR) ? method.isConstructor() : method.getName().equals(name);
        return named
                && !method.isAbstract()
                && types.equals(method.getParameters().asTypeList().asErasures().stream()
                        .map(Method::simple)
                        .toList());
    }

    boolean isIn(TypeDescription type) {
        return type.getDeclaredMethods().stream().anyMatch(this::matches);
    }

    // Not getSimpleName: that of a nested class needs the class file of the outer one.
    private static String simple(TypeDescription type) {
        String name = type.isArray() ? simple(type.getComponentType()) + "[]" : type.getName();
        return name.substring(name.lastIndexOf('.') + 1);
    }

    @Override
    public String toString() {
        return "%s.%s(%s)".formatted(owner, name, types.stream().collect(Collectors.joining(",")));
    }
}
