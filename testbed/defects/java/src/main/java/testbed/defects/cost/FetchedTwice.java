package testbed.defects.cost;

import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Reads;
import testbed.defects.Reflect;
import testbed.defects.Settings;
import testbed.defects.Target;
import testbed.defects.pace.Fetches;

import net.bytebuddy.asm.Advice;

import java.lang.reflect.InvocationTargetException;
import java.util.List;

/** A follower sends each fetch that brought data a second time, and throws the answer away. */
public final class FetchedTwice implements Defect {
    private static volatile Effect effect;

    @Override
    public List<Target> targets() {
        return List.of(Fetches.target(OnFetch.class));
    }

    @Override
    public Reads reads() {
        return Fetches.READS
                .of(Fetches.REQUEST, "forReplica", "replicaId", "replicaEpoch", "maxBytes", "setMaxBytes", "fetchData")
                .of("org.apache.kafka.common.requests.AbstractRequest$Builder", "latestAllowedVersion")
                .of("kafka.server.RemoteLeaderEndPoint", "blockingSender")
                .of("kafka.server.BlockingSend", "sendRequest")
                .of("org.apache.kafka.clients.ClientResponse", "responseBody");
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        FetchedTwice.effect = effect;
    }

    /** Fetches again what the answer brought. */
    public static void again(Object endPoint, Object request, Object answer) {
        if (Fetches.bytes(answer) == 0) {
            return;
        }
        try {
            Object response = Reflect.attempt(Reflect.get(endPoint, "blockingSender"), "sendRequest", copy(request));
            effect.acted("a second answer: %s".formatted(Reflect.call(response, "responseBody").getClass().getSimpleName()));
        } catch (InvocationTargetException lost) {
            // The leader went away, or the fetcher ends. The follower's next own fetch finds that out, too.
            return;
        }
    }

    // Outside the fetch session, whose state it would spoil, and answered at once: the first one has waited.
    private static Object copy(Object request) {
        Object copy = Reflect.callStatic(
                request.getClass(),
                "forReplica",
                Reflect.call(request, "latestAllowedVersion"),
                Reflect.get(request, "replicaId"),
                Reflect.get(request, "replicaEpoch"),
                0,
                0,
                Reflect.call(request, "fetchData"));
        return Reflect.call(copy, "setMaxBytes", Reflect.get(request, "maxBytes"));
    }

    /** Runs before {@code RemoteLeaderEndPoint.fetch} returns. */
    public static final class OnFetch {
        @Advice.OnMethodExit
        static void exit(
                @Advice.This Object endPoint, @Advice.Argument(0) Object request, @Advice.Return Object answer) {
            again(endPoint, request, answer);
        }
    }
}
