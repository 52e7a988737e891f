package testbed.defects.cost;

import testbed.defects.Background;
import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Parameter;
import testbed.defects.Settings;

import com.sun.management.OperatingSystemMXBean;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.List;

/** The broker burns a share of its own CPU time in addition, at most one core. */
public final class CpuBurn implements Defect {
    @Override
    public List<Parameter> parameters() {
        return List.of(Parameter.number("share", 0.5, 0, 10));
    }

    private static final long STEP_MS = 20;

    @Override
    public void begin(Settings settings, Effect effect) {
        double share = settings.number("share");
        Background.start(this, () -> burn(share, effect));
    }

    private static void burn(double share, Effect effect) throws InterruptedException {
        OperatingSystemMXBean process =
                (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long begunProcess = process.getProcessCpuTime();
        long begunOwn = threads.getCurrentThreadCpuTime();
        while (true) {
            Thread.sleep(STEP_MS);
            long own = threads.getCurrentThreadCpuTime() - begunOwn;
            long others = process.getProcessCpuTime() - begunProcess - own;
            long due = due(share, others, own);
            long until = threads.getCurrentThreadCpuTime() + due;
            while (threads.getCurrentThreadCpuTime() < until) {
                Thread.onSpinWait();
            }
            if (due > 0) {
                effect.acted("%d us".formatted(due / 1000));
            }
        }
    }

    // What one core cannot give within ten steps is let go: the burning must not outlast the work.
    static long due(double share, long othersNs, long ownNs) {
        return Math.min(Math.max(0, (long) (share * othersNs) - ownNs), 10 * STEP_MS * 1_000_000);
    }
}
