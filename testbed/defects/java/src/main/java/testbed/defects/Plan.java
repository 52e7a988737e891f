package testbed.defects;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/** The methods of one Kafka release that a defect changes, and what the release lacks of these and what it reads. */
record Plan(Defect defect, List<Change> changes, List<String> missing) {
    /** An advice and the method of this release that it goes into. */
    record Change(Class<?> advice, Method method) {}

    /** Returns the plan of a defect for the classes of a release; reads their files and loads none. */
    static Plan of(Defect defect, Release release) {
        List<Change> changes = new ArrayList<>();
        List<String> missing = new ArrayList<>();
        for (Target target : defect.targets()) {
            target.methods().stream()
                    .filter(release::has)
                    .findFirst()
                    .ifPresentOrElse(
                            method -> changes.add(new Change(target.advice(), method)),
                            () -> missing.add(target.methods().stream()
                                    .map(Method::toString)
                                    .collect(Collectors.joining(" or "))));
        }
        if (missing.isEmpty()) {
            // A release without the methods is refused anyway; what it lacks besides would hide them.
            defect.reads().members().stream()
                    .filter(each -> !release.has(each))
                    .forEach(each -> missing.add(each.toString()));
        }
        return new Plan(defect, changes, missing);
    }
}
