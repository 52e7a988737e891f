package testbed.defects.cost;

import testbed.defects.Background;
import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Parameter;
import testbed.defects.Settings;

import java.util.ArrayList;
import java.util.List;

/** The broker leaks memory at a pace, up to a share of its heap. */
public final class HeapLeak implements Defect {
    @Override
    public List<Parameter> parameters() {
        return List.of(
                Parameter.number("mb_per_s", 4, 0, 100_000), Parameter.number("share", 0.5, 0, 1));
    }

    private static final int MB = 1 << 20;
    private static final int STEPS_PER_S = 10;
    // Small enough that no collector handles them as large objects.
    private static final int BLOCK = 16 << 10;

    private final List<byte[]> leaked = new ArrayList<>();

    @Override
    public void begin(Settings settings, Effect effect) {
        double perStep = settings.number("mb_per_s") * MB / STEPS_PER_S;
        long blocks = (long) (settings.number("share") * Runtime.getRuntime().maxMemory()) / BLOCK;
        Background.start(this, () -> {
            double due = 0;
            while (leaked.size() < blocks) {
                Thread.sleep(1000 / STEPS_PER_S);
                for (due += perStep; due >= BLOCK && leaked.size() < blocks; due -= BLOCK) {
                    leaked.add(new byte[BLOCK]);
                    effect.acted("%d bytes".formatted(BLOCK));
                }
            }
            // The thread holds what it leaked.
            Thread.sleep(Long.MAX_VALUE);
        });
    }
}
