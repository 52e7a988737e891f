package testbed.defects.cost;

import testbed.defects.Background;
import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Parameter;
import testbed.defects.Settings;
import testbed.defects.Target;

import org.slf4j.LoggerFactory;

import java.util.List;

/** The broker logs errors without a cause. */
public final class ErrorLine implements Defect {
    @Override
    public String name() {
        return "error-line";
    }

    @Override
    public String summary() {
        return "The broker logs an ERROR line every so many seconds.";
    }

    @Override
    public List<Parameter> parameters() {
        return List.of(Parameter.number("every", 60, 0.1, 86_400));
    }

    @Override
    public List<Target> targets() {
        return List.of();
    }

    @Override
    public void begin(Settings settings, Effect effect) {
        Background.every(this, settings.number("every"), () -> {
            // Made here, not before: the broker sets its logging up first.
            LoggerFactory.getLogger("kafka.server.ReplicaManager").error("A defect of the testbed wrote this line.");
            effect.acted("a line");
        });
    }
}
