package testbed.defects;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A defect's name and the parameters given: one part of the agent's option. */
record Spec(String name, Map<String, String> given) {
    /** Returns what {@code name,key=value;name…} asks for; throws {@link Refused} at a part that is none. */
    static List<Spec> parse(String option) {
        if (option == null || option.isBlank()) {
            throw new Refused("no defect named; the option is name[,key=value...][;name...]");
        }
        List<Spec> specs = new ArrayList<>();
        for (String part : option.split(";", -1)) {
            Spec spec = one(part.strip());
            if (specs.stream().anyMatch(each -> each.name.equals(spec.name))) {
                throw new Refused(spec.name + " is named twice");
            }
            specs.add(spec);
        }
        return specs;
    }

    private static Spec one(String part) {
        String[] fields = part.split(",", -1);
        if (fields[0].isEmpty()) {
            throw new Refused("a defect without a name in \"" + part + "\"");
        }
        Map<String, String> given = new LinkedHashMap<>();
        for (int at = 1; at < fields.length; at++) {
            int equals = fields[at].indexOf('=');
            if (equals < 1) {
                throw new Refused("%s: \"%s\" is not key=value".formatted(fields[0], fields[at]));
            }
            if (given.put(fields[at].substring(0, equals), fields[at].substring(equals + 1)) != null) {
                throw new Refused("%s: %s is given twice".formatted(fields[0], fields[at].substring(0, equals)));
            }
        }
        return new Spec(fields[0], given);
    }
}
