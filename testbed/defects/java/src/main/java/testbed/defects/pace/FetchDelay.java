package testbed.defects.pace;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Parameter;
import testbed.defects.Reads;
import testbed.defects.Settings;
import testbed.defects.Target;

import net.bytebuddy.asm.Advice;

import java.util.List;

/** Each follower's fetch that brings data takes some milliseconds longer. */
public final class FetchDelay implements Defect {
    private static volatile long ms;
    private static volatile Effect effect;

    @Override
    public List<Parameter> parameters() {
        return List.of(Parameter.whole("ms", 5, 0, 60_000));
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
        ms = settings.whole("ms");
        FetchDelay.effect = effect;
    }

    /** Waits when the answer has data. */
    public static void delay(Object answer) {
        if (ms > 0 && Fetches.bytes(answer) > 0) {
            Fetches.pause(ms);
            effect.acted("a fetch took %d ms longer".formatted(ms));
        }
    }

    /** Runs before {@code RemoteLeaderEndPoint.fetch} returns. */
    public static final class OnFetch {
        @Advice.OnMethodExit
        static void exit(@Advice.Return Object answer) {
            delay(answer);
        }
    }
}
