package testbed.defects;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Says without starting Kafka whether a release has the methods that defects change, and lists the defects. */
public final class Check {
    private static final String USAGE = "usage: testbed.defects.Check --list | --libs DIR NAME...";

    private Check() {}

    /** Ends with 0 when all is there, 1 when something is missing, 2 when the arguments are wrong. */
    public static void main(String[] arguments) {
        System.exit(run(List.of(arguments), System.out, System.err));
    }

    static int run(List<String> arguments, PrintStream out, PrintStream problems) {
        try {
            if (arguments.equals(List.of("--list"))) {
                Registry.all().forEach(each -> out.println(described(each)));
                return 0;
            }
            if (arguments.size() < 3 || !arguments.get(0).equals("--libs")) {
                throw new Refused(USAGE);
            }
            List<Defect> defects = arguments.subList(2, arguments.size()).stream().map(Registry::named).toList();
            return check(Path.of(arguments.get(1)), defects, out, problems) ? 0 : 1;
        } catch (Refused | IOException refused) {
            problems.println(refused.getMessage());
            return 2;
        }
    }

    private static boolean check(Path libs, List<Defect> defects, PrintStream out, PrintStream problems)
            throws IOException {
        boolean complete = true;
        try (Release release = Release.in(libs)) {
            for (Defect defect : defects) {
                Plan plan = Plan.of(defect, release);
                List<String> missing = new ArrayList<>(plan.missing());
                for (Plan.Change change : plan.changes()) {
                    String problem = release.problem(change);
                    if (!problem.isEmpty()) {
                        missing.add(change.method().toString());
                        problems.println(change.method() + ": " + problem);
                    }
                }
                if (missing.isEmpty()) {
                    out.println("ok " + defect.name());
                }
                missing.forEach(each -> out.println("missing " + defect.name() + " " + each));
                complete &= missing.isEmpty();
            }
        }
        return complete;
    }

    // The kind, and an option with every default.
    private static String described(Defect defect) {
        StringBuilder option = new StringBuilder(Kind.of(defect.getClass()) + " " + defect.name());
        defect.parameters().forEach(each -> option.append("," + each.name() + "=" + each.fallback()));
        return option.toString();
    }
}
