package testbed.defects;

/** Runs what a defect does on its own: a thread that never keeps the JVM alive. */
public final class Background {
    /** Something that may wait. */
    public interface Work {
        /** Does it. */
        void run() throws InterruptedException;
    }

    private Background() {}

    /** Starts a thread for the defect that works each time so many seconds have passed. */
    public static void every(Defect defect, double seconds, Work work) {
        long ms = (long) (seconds * 1e3);
        start(defect, () -> {
            while (true) {
                Thread.sleep(ms);
                work.run();
            }
        });
    }

    /** Starts a thread for the defect; what it throws ends the JVM. */
    public static void start(Defect defect, Work work) {
        Thread thread = new Thread(
                () -> {
                    try {
                        work.run();
                    } catch (InterruptedException ended) {
                        Thread.currentThread().interrupt();
                    }
                },
                "testbed-defect-" + defect.name());
        thread.setDaemon(true);
        thread.setUncaughtExceptionHandler((one, error) -> {
            throw Agent.halt("%s: %s".formatted(defect.name(), error));
        });
        thread.start();
    }
}
