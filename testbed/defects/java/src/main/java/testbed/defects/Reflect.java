package testbed.defects;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Reads Kafka's objects by name: releases differ in their classes' packages, and one jar serves them all.
 *
 * <p>What a name does not lead to ends the JVM: a defect that cannot see what it works on must not seem to work.
 */
public final class Reflect {
    private static final Map<String, Method> METHODS = new ConcurrentHashMap<>();
    private static final Map<String, Field> FIELDS = new ConcurrentHashMap<>();

    private Reflect() {}

    /** Returns what the first method of this name and number of arguments returns; looks in superclasses, too. */
    public static Object call(Object object, String name, Object... arguments) {
        return invoke(object.getClass(), object, name, arguments);
    }

    /** Returns what a static method returns. */
    public static Object callStatic(Class<?> type, String name, Object... arguments) {
        return invoke(type, null, name, arguments);
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
        } catch (IllegalAccessException error) {
            throw Agent.halt(error.toString());
        }
    }

    private static Object invoke(Class<?> type, Object object, String name, Object... arguments) {
        Method method = METHODS.computeIfAbsent(
                type.getName() + "." + name + "/" + arguments.length, key -> method(type, name, arguments.length));
        try {
            return method.invoke(object, arguments);
        } catch (ReflectiveOperationException | IllegalArgumentException error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            throw Agent.halt("%s.%s: %s".formatted(type.getName(), name, cause));
        }
    }

    private static Method method(Class<?> type, String name, int arguments) {
        for (Class<?> at = type; at != null; at = at.getSuperclass()) {
            for (Method each : at.getDeclaredMethods()) {
                if (each.getName().equals(name) && each.getParameterCount() == arguments && !each.isBridge()) {
                    each.setAccessible(true);
                    return each;
                }
            }
        }
        throw Agent.halt("%s has no method %s with %d arguments".formatted(type.getName(), name, arguments));
    }

    private static Field field(Class<?> type, String name) {
        return FIELDS.computeIfAbsent(type.getName() + "." + name, key -> {
            for (Class<?> at = type; at != null; at = at.getSuperclass()) {
                for (Field each : at.getDeclaredFields()) {
                    if (each.getName().equals(name)) {
                        each.setAccessible(true);
                        return each;
                    }
                }
            }
            throw Agent.halt("%s has no field %s".formatted(type.getName(), name));
        });
    }
}
