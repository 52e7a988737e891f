package testbed.defects.pace;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Parameter;
import testbed.defects.Reads;
import testbed.defects.Settings;
import testbed.defects.Target;

import net.bytebuddy.asm.Advice;

import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/** A fetcher that got data stands still for some seconds, one fetcher every so many seconds. */
public final class FetcherStall implements Defect {
    private static final AtomicLong DUE_NS = new AtomicLong();
    private static volatile long ms;
    private static volatile long everyNs;
    private static volatile Effect effect;

    @Override
    public List<Parameter> parameters() {
        return List.of(
                Parameter.number("seconds", 2, 0, 3600), Parameter.number("every", 30, 0.1, 86_400));
    }

    @Override
    public List<Target> targets() {
        return List.of(Fetches.target(OnFetch.class));
    }

    @Override
    public Reads reads() {
        return Fetches.READS;
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        ms = (long) (settings.number("seconds") * 1e3);
        everyNs = (long) (settings.number("every") * 1e9);
        DUE_NS.set(System.nanoTime() + everyNs);
        FetcherStall.effect = effect;
    }

    /** Stands still when it is time and the answer has data. */
    public static void stall(Object answer) {
        if (isDue(System.nanoTime()) && Fetches.bytes(answer) > 0 && taken(System.nanoTime())) {
            Fetches.pause(ms);
            effect.acted("a fetcher stood still for %d ms".formatted(ms));
        }
    }

    static boolean isDue(long nowNs) {
        return nowNs - DUE_NS.get() >= 0;
    }

    // One fetcher alone takes the turn.
    static boolean taken(long nowNs) {
        long due = DUE_NS.get();
        return nowNs - due >= 0 && DUE_NS.compareAndSet(due, nowNs + everyNs);
    }

    /** Runs before {@code RemoteLeaderEndPoint.fetch} returns. */
    public static final class OnFetch {
        @Advice.OnMethodExit
        static void exit(@Advice.Return Object answer) {
            stall(answer);
        }
    }
}
