package testbed.defects;

import java.util.ArrayList;
import java.util.List;

/** The methods and fields of Kafka that a defect uses by name, through {@link Reflect}: looked for before the start. */
public record Reads(List<Member> members) {
    /** The methods or fields of one name, of a class that has one of several names, as releases differ. */
    public record Member(List<String> owners, String name) {
        @Override
        public String toString() {
            return "%s.%s".formatted(String.join(" or ", owners), name);
        }
    }

    /** Returns that nothing is read. */
    public static Reads nothing() {
        return new Reads(List.of());
    }

    /** Returns these reads and those of members of a class; {@code owner} is its names, each but the first after a |. */
    public Reads of(String owner, String... names) {
        List<Member> more = new ArrayList<>(members);
        for (String name : names) {
            more.add(new Member(List.of(owner.split("\\|")), name));
        }
        return new Reads(List.copyOf(more));
    }
}
