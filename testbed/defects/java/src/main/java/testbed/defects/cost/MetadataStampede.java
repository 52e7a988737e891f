package testbed.defects.cost;

import testbed.defects.Background;
import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Parameter;
import testbed.defects.Settings;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** The broker sends Metadata requests for all topics to its own listener, so many a second. */
public final class MetadataStampede implements Defect {
    @Override
    public List<Parameter> parameters() {
        return List.of(Parameter.number("per_second", 200, 0.1, 100_000));
    }

    private static final int TIMEOUT_MS = 10_000;
    private static final long AGAIN_MS = 1_000;

    @Override
    public void begin(Settings settings, Effect effect) {
        double perSecond = settings.number("per_second");
        InetSocketAddress listener = Listener.of(System.getProperty("sun.java.command", ""));
        Background.start(this, () -> {
            while (true) {
                try (Socket socket = new Socket()) {
                    socket.connect(listener, TIMEOUT_MS);
                    socket.setSoTimeout(TIMEOUT_MS);
                    ask(socket, perSecond, effect);
                } catch (IOException notThere) {
                    // The listener opens some seconds after this agent and closes before the JVM ends.
                    Thread.sleep(AGAIN_MS);
                }
            }
        });
    }

    private static void ask(Socket socket, double perSecond, Effect effect) throws IOException, InterruptedException {
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream()));
        DataInputStream in = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
        long begun = System.nanoTime();
        for (long sent = 0; ; sent++) {
            long dueMs = (long) (sent / perSecond * 1e3) - (System.nanoTime() - begun) / 1_000_000;
            if (dueMs > 0) {
                Thread.sleep(dueMs);
            }
            out.write(request((int) sent));
            out.flush();
            int size = in.readInt();
            in.skipNBytes(size);
            effect.acted("an answer of %d bytes".formatted(size));
        }
    }

    /** Returns a Metadata request of version 0, which all releases answer: no topic named means all. */
    static byte[] request(int correlation) {
        byte[] client = "testbed-metadata-stampede".getBytes(StandardCharsets.US_ASCII);
        ByteBuffer request = ByteBuffer.allocate(4 + 2 + 2 + 4 + 2 + client.length + 4);
        request.putInt(request.capacity() - 4);
        request.putShort((short) 3); // The key of Metadata.
        request.putShort((short) 0); // The version.
        request.putInt(correlation);
        request.putShort((short) client.length).put(client);
        request.putInt(0); // The topics.
        return request.array();
    }
}
