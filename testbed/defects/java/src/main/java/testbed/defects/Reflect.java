package testbed.defects;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Reads Kafka's objects by name: releases differ in their classes' packages, and one jar serves them all.
 *
 * <p>What a name does not lead to ends the JVM: a defect that cannot see what it works on must not seem to work.
 */
public final class Reflect {
    private record Name(Class<?> type, String name, int arguments) {}

    private static final Map<Name, List<Method>> METHODS = new ConcurrentHashMap<>();
    private static final Map<Name, Field> FIELDS = new ConcurrentHashMap<>();

    private Reflect() {}

    /** Returns what the method of this name that takes the arguments returns; looks in superclasses, too. */
    public static Object call(Object object, String name, Object... arguments) {
        return orHalt(object.getClass(), object, name, arguments);
    }

    /** Returns what a static method returns. */
    public static Object callStatic(Class<?> type, String name, Object... arguments) {
        return orHalt(type, null, name, arguments);
    }

    /** Returns what {@link #call} does, or throws what the method throws. */
    public static Object attempt(Object object, String name, Object... arguments) throws InvocationTargetException {
        return invoke(object.getClass(), object, name, arguments);
    }

    /** Returns a new object of a class that has one public constructor. */
    public static Object made(Class<?> type, Object... arguments) {
        try {
            return type.getConstructors()[0].newInstance(arguments);
        } catch (ReflectiveOperationException | IllegalArgumentException error) {
            throw Agent.halt("%s cannot be made: %s".formatted(type.getName(), error));
        }
    }

    /** Returns the value of a field; looks in superclasses, too. */
    public static Object get(Object object, String name) {
        try {
            return field(object.getClass(), name).get(object);
        } catch (IllegalAccessException error) {
            throw Agent.halt(error.toString());
        }
    }

    /** Sets a field; looks in superclasses, too. */
    public static void set(Object object, String name, Object value) {
        try {
            field(object.getClass(), name).set(object, value);
        } catch (IllegalAccessException | IllegalArgumentException error) {
            throw Agent.halt(error.toString());
        }
    }

    private static Object orHalt(Class<?> type, Object object, String name, Object... arguments) {
        try {
            return invoke(type, object, name, arguments);
        } catch (InvocationTargetException error) {
            throw Agent.halt("%s.%s: %s".formatted(type.getName(), name, error.getCause()));
        }
    }

    private static Object invoke(Class<?> type, Object object, String name, Object... arguments)
            throws InvocationTargetException {
        List<Method> methods =
                METHODS.computeIfAbsent(new Name(type, name, arguments.length), Reflect::methods);
        for (Method each : methods) {
            if (takes(each, arguments)) {
                try {
                    return each.invoke(object, arguments);
                } catch (IllegalAccessException error) {
                    throw Agent.halt(error.toString());
                }
            }
        }
        throw Agent.halt("%s has no method %s for %d arguments of these types"
                .formatted(type.getName(), name, arguments.length));
    }

    // The class's own methods come before those it inherits.
    private static List<Method> methods(Name wanted) {
        List<Method> found = new ArrayList<>();
        for (Class<?> at = wanted.type(); at != null; at = at.getSuperclass()) {
            for (Method each : at.getDeclaredMethods()) {
                if (each.getName().equals(wanted.name()) && each.getParameterCount() == wanted.arguments()) {
                    found.add(each);
                }
            }
        }
        found.removeIf(each -> each.isBridge() || !each.trySetAccessible());
        return found;
    }

    private static boolean takes(Method method, Object[] arguments) {
        Class<?>[] types = method.getParameterTypes();
        for (int at = 0; at < types.length; at++) {
            boolean taken = types[at].isPrimitive()
                    ? arguments[at] != null && boxed(types[at]) == arguments[at].getClass()
                    : arguments[at] == null || types[at].isInstance(arguments[at]);
            if (!taken) {
                return false;
            }
        }
        return true;
    }

    private static Class<?> boxed(Class<?> primitive) {
        return java.lang.invoke.MethodType.methodType(primitive).wrap().returnType();
    }

    private static Field field(Class<?> type, String name) {
        return FIELDS.computeIfAbsent(new Name(type, name, 0), wanted -> {
            for (Class<?> at = type; at != null; at = at.getSuperclass()) {
                for (Field each : at.getDeclaredFields()) {
                    if (each.getName().equals(name) && each.trySetAccessible()) {
                        return each;
                    }
                }
            }
            throw Agent.halt("%s has no field %s".formatted(type.getName(), name));
        });
    }
}
