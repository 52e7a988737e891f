package testbed.defects.cost;

import testbed.defects.Agent;
import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Kafka;
import testbed.defects.Parameter;
import testbed.defects.Reads;
import testbed.defects.Reflect;
import testbed.defects.Settings;
import testbed.defects.Target;
import testbed.defects.Topics;
import testbed.defects.pace.AppendSlow;

import net.bytebuddy.asm.Advice;

import org.apache.kafka.common.TopicPartition;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** After each append to a log the broker writes the same bytes again, to a file next to the logs. */
public final class WriteAmplified implements Defect {
    private static final String SCRATCH = ".testbed-write-amplified";
    private static final long MOST_BYTES = 64L << 20;
    private static final Map<File, Scratch> SCRATCHES = new ConcurrentHashMap<>();
    private static volatile int times;
    private static volatile Effect effect;

    @Override
    public List<Parameter> parameters() {
        return List.of(Parameter.whole("times", 2, 1, 100));
    }

    @Override
    public List<Target> targets() {
        return List.of(AppendSlow.target(OnAppend.class));
    }

    @Override
    public Reads reads() {
        return Reads.nothing().of(Kafka.LOG, "topicPartition", "parentDirFile").of(Kafka.MEMORY_RECORDS, "buffer");
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        times = (int) settings.whole("times");
        WriteAmplified.effect = effect;
    }

    /** Writes the appended records again. */
    public static void again(Object log, Object records) {
        if (!Topics.isOfUser(((TopicPartition) Reflect.call(log, "topicPartition")).topic())) {
            return;
        }
        File folder = (File) Reflect.call(log, "parentDirFile");
        long written = SCRATCHES.computeIfAbsent(folder, WriteAmplified::scratch)
                .write((ByteBuffer) Reflect.call(records, "buffer"), times);
        effect.acted("%d bytes more in %s".formatted(written, folder));
    }

    private static Scratch scratch(File folder) {
        return new Scratch(folder.toPath().resolve(SCRATCH), MOST_BYTES);
    }

    /** A file that begins again when it is full: a page that was cut off and is written again counts again. */
    static final class Scratch {
        private final FileChannel file;
        private final long mostBytes;

        Scratch(Path path, long mostBytes) {
            this.mostBytes = mostBytes;
            try {
                file = FileChannel.open(
                        path, StandardOpenOption.CREATE, StandardOpenOption.WRITE, StandardOpenOption.TRUNCATE_EXISTING);
            } catch (IOException error) {
                throw Agent.halt("%s cannot be made: %s".formatted(path, error));
            }
        }

        /** Writes bytes several times, of each time no more than the file may have; returns how many. */
        synchronized long write(ByteBuffer bytes, int times) {
            long written = 0;
            try {
                for (int time = 0; time < times; time++) {
                    ByteBuffer left = bytes.duplicate();
                    left.limit(left.position() + (int) Math.min(left.remaining(), mostBytes));
                    if (file.position() + left.remaining() > mostBytes) {
                        file.truncate(0);
                    }
                    while (left.hasRemaining()) {
                        written += file.write(left);
                    }
                }
            } catch (IOException error) {
                throw Agent.halt("a file next to the logs cannot be written: " + error);
            }
            return written;
        }
    }

    /** Runs before {@code UnifiedLog.append} returns. */
    public static final class OnAppend {
        @Advice.OnMethodExit
        static void exit(@Advice.This Object log, @Advice.Argument(0) Object records) {
            again(log, records);
        }
    }
}
