package testbed.defects.cost;

import testbed.defects.Background;
import testbed.defects.Defect;
import testbed.defects.Effect;
import testbed.defects.Parameter;
import testbed.defects.Settings;

import org.slf4j.LoggerFactory;

import java.util.List;

/** The broker logs an ERROR line every so many seconds. */
public final class ErrorLine implements Defect {
    @Override
    public List<Parameter> parameters() {
        return List.of(Parameter.number("every", 60, 0.1, 86_400));
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
