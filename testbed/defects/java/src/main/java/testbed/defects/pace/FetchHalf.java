package testbed.defects.pace;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Reads;
import testbed.defects.Reflect;
import testbed.defects.Settings;
import testbed.defects.Target;

import net.bytebuddy.asm.Advice;

import java.util.List;

/** Followers ask for half of replica.fetch.response.max.bytes in each fetch. */
public final class FetchHalf implements Defect {
    private static volatile Effect effect;

    @Override
    public List<Target> targets() {
        return List.of(Fetches.target(OnFetch.class));
    }

    @Override
    public Reads reads() {
        return Reads.nothing().of(Fetches.REQUEST, "maxBytes", "setMaxBytes");
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        FetchHalf.effect = effect;
    }

    /** Halves the bytes that a request asks for. */
    public static void halve(Object request) {
        int bytes = (int) Reflect.get(request, "maxBytes");
        Reflect.call(request, "setMaxBytes", Math.max(1, bytes / 2));
        effect.acted("%d bytes in place of %d".formatted(Math.max(1, bytes / 2), bytes));
    }

    /** Runs before {@code RemoteLeaderEndPoint.fetch} sends the request, which is built anew for each. */
    public static final class OnFetch {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(0) Object request) {
            halve(request);
        }
    }
}
