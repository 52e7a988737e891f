package testbed.defects;

/** What was asked for cannot be done; the message says why in one line. */
public final class Refused extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Keeps the message. */
    public Refused(String message) {
        super(message);
    }
}
