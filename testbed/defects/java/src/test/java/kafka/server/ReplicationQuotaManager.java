package kafka.server;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Quota;

import java.util.List;
import java.util.concurrent.ConcurrentHashMap;

/** What defects see of Kafka's class of this name. */
public class ReplicationQuotaManager {
    private final Object replicationType;
    private final ConcurrentHashMap<String, List<Integer>> throttledPartitions = new ConcurrentHashMap<>();
    private long recorded;
    private Quota quota;

    public ReplicationQuotaManager(String replicationType) {
        this.replicationType = replicationType;
    }

    public void record(long value) {
        recorded += value;
    }

    public long recorded() {
        return recorded;
    }

    public boolean isThrottled(TopicPartition partition) {
        return !partition.topic().startsWith("free");
    }

    public void updateQuota(Quota quota) {
        this.quota = quota;
    }

    public void markThrottled(String topic) {
        throttledPartitions.put(topic, List.of(-1));
    }

    public void removeThrottle(String topic) {
        throttledPartitions.remove(topic);
    }

    public boolean lists(String topic) {
        return throttledPartitions.containsKey(topic);
    }

    public double bound() {
        return quota.bound();
    }

    public int samples() {
        return getQuotaMetricConfig(quota).samples();
    }

    public String type() {
        return replicationType.toString();
    }

    private MetricConfig getQuotaMetricConfig(Quota quota) {
        return new MetricConfig().samples(11).quota(quota);
    }
}
