package testbed.defects;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import testbed.defects.throttle.Leak;

import net.bytebuddy.asm.Advice;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;

class CheckTest {
    private final ByteArrayOutputStream said = new ByteArrayOutputStream();

    private int run(String... arguments) {
        PrintStream out = new PrintStream(said, true, StandardCharsets.UTF_8);
        return Check.run(List.of(arguments), out, out);
    }

    private String said() {
        return said.toString(StandardCharsets.UTF_8);
    }

    @Test
    void listsEveryDefect() {
        assertEquals(0, run("--list"));
        List<String> lines = said().lines().toList();
        assertEquals(Registry.all().size(), lines.size());
        assertTrue(lines.contains("placement leaderless,partition=0,topic="), said());
        assertTrue(lines.contains("cost heap-leak,mb_per_s=4,share=0.5"), said());
    }

    // The jar has another class alone, so that the class is looked for on the tests' class path after it.
    @Test
    void namesTheMethodsThatAReleaseHasAndThoseItLacks(@TempDir Path libs) throws Exception {
        try (JarOutputStream jar = new JarOutputStream(Files.newOutputStream(libs.resolve("kafka.jar")))) {
            jar.putNextEntry(new JarEntry("empty"));
        }
        assertEquals(1, run("--libs", libs.toString(), "leader-throttle-leak", "late-isr"));
        assertEquals(
                "ok leader-throttle-leak\nmissing late-isr kafka.cluster.Partition.isFollowerInSync(Replica)\n",
                said().replace("\r", ""));
    }

    @Test
    void refusesWhatIsNoReleaseOrNoDefect(@TempDir Path empty) {
        assertEquals(2, run("--libs", empty.toString(), "late-isr"));
        assertEquals(2, run("--libs", empty.resolve("none").toString(), "late-isr"));
        assertEquals(2, run("--libs", empty.toString()));
        assertEquals(2, run("--libs", empty.toString(), "nothing"));
    }

    /** An advice that needs a field that the class lacks. */
    public static final class Unfit {
        @Advice.OnMethodEnter
        static void enter(@Advice.FieldValue("absent") Object absent) {
            absent.hashCode();
        }
    }

    @Test
    void saysWhyAnAdviceDoesNotFit() throws Exception {
        Method record = new Method("kafka.server.ReplicationQuotaManager", "record", List.of("long"));
        try (Release release = Release.running()) {
            assertTrue(release.problem(new Plan.Change(Unfit.class, record)).contains("absent"));
            assertEquals("", release.problem(new Plan.Change(Leak.OnRecord.class, record)));
        }
    }

    @Test
    void findsAMemberOfEitherNameOfItsClass() throws Exception {
        String quota = "kafka.server.ReplicationQuotaManager";
        Reads reads = Reads.nothing().of("moved.Away|" + quota, "isThrottled", "replicationType", "absent");
        try (Release release = Release.running()) {
            assertEquals(
                    List.of("moved.Away or " + quota + ".absent"),
                    reads.members().stream()
                            .filter(each -> !release.has(each))
                            .map(Reads.Member::toString)
                            .toList());
        }
    }
}
