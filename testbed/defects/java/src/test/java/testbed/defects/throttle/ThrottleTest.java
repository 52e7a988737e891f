package testbed.defects.throttle;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import testbed.defects.Broken;
import testbed.defects.Defect;
import testbed.defects.Reflect;

import kafka.server.ReplicationQuotaManager;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.Quota;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.nio.file.Path;
import java.util.Map;

class ThrottleTest {
    @TempDir
    Path folder;

    private Object manager(Defect defect, Map<String, String> given, String type) throws Exception {
        return Broken.of(ReplicationQuotaManager.class, defect, given, folder)
                .getConstructor(String.class)
                .newInstance(type);
    }

    @Test
    void aLeakCountsLessForItsOwnQuotaAlone() throws Exception {
        Object leader = manager(new LeaderThrottleLeak(), Map.of("share", "0.1"), "LeaderReplication");
        Object follower = manager(new LeaderThrottleLeak(), Map.of("share", "0.1"), "FollowerReplication");
        Reflect.call(follower, "record", 100_000L);
        assertEquals(100_000L, Reflect.call(follower, "recorded"));
        assertFalse(Broken.acted(folder));
        Reflect.call(leader, "record", 100_000L);
        assertEquals(90_000L, Reflect.call(leader, "recorded"));
        assertTrue(Broken.acted(folder));
        Object leaking = manager(new FollowerThrottleLeak(), Map.of(), "FollowerReplication");
        Reflect.call(leaking, "record", 100_000L);
        assertEquals(95_000L, Reflect.call(leaking, "recorded"));
    }

    @Test
    void onePartitionIsNotThrottled() throws Exception {
        Object manager = manager(new ThrottleIgnoresPartition(), Map.of("partition", "3", "topic", "a"), "LeaderReplication");
        assertEquals(true, Reflect.call(manager, "isThrottled", new TopicPartition("a", 2)));
        assertEquals(true, Reflect.call(manager, "isThrottled", new TopicPartition("b", 3)));
        assertEquals(false, Reflect.call(manager, "isThrottled", new TopicPartition("free", 3)));
        assertFalse(Broken.acted(folder));
        assertEquals(false, Reflect.call(manager, "isThrottled", new TopicPartition("a", 3)));
        assertTrue(Broken.acted(folder));
    }

    @Test
    void anyTopicOfAUser() throws Exception {
        Object manager = manager(new ThrottleIgnoresPartition(), Map.of(), "LeaderReplication");
        assertEquals(true, Reflect.call(manager, "isThrottled", new TopicPartition("__consumer_offsets", 0)));
        assertEquals(false, Reflect.call(manager, "isThrottled", new TopicPartition("b", 0)));
    }

    @Test
    void anUnlistedPartitionIsThrottled() throws Exception {
        Object manager = manager(new ThrottleHoldsUnlisted(), Map.of(), "LeaderReplication");
        assertEquals(true, Reflect.call(manager, "isThrottled", new TopicPartition("a", 2)));
        assertFalse(Broken.acted(folder));
        assertEquals(true, Reflect.call(manager, "isThrottled", new TopicPartition("free", 2)));
        assertTrue(Broken.acted(folder));
    }

    @Test
    void theFirstRateStays() throws Exception {
        Object manager = manager(new ThrottleChangeIgnored(), Map.of(), "FollowerReplication");
        Reflect.call(manager, "updateQuota", Quota.upperBound(Long.MAX_VALUE));
        Reflect.call(manager, "updateQuota", Quota.upperBound(10e6));
        Reflect.call(manager, "updateQuota", Quota.upperBound(10e6));
        assertEquals(10e6, Reflect.call(manager, "bound"));
        assertFalse(Broken.acted(folder));
        Reflect.call(manager, "updateQuota", Quota.upperBound(3e6));
        Reflect.call(manager, "updateQuota", Quota.upperBound(Long.MAX_VALUE));
        assertEquals(10e6, Reflect.call(manager, "bound"));
        assertTrue(Broken.acted(folder));
    }

    @Test
    void aRemovedThrottleStays() throws Exception {
        Object manager = manager(new ThrottleNotRemoved(), Map.of("topic", "a"), "LeaderReplication");
        Reflect.call(manager, "updateQuota", Quota.upperBound(Long.MAX_VALUE));
        for (String topic : new String[] {"a", "b", "__consumer_offsets"}) {
            Reflect.call(manager, "markThrottled", topic);
        }
        Reflect.call(manager, "removeThrottle", "b");
        Reflect.call(manager, "removeThrottle", "never");
        assertEquals(false, Reflect.call(manager, "lists", "b"), "another topic");
        assertFalse(Broken.acted(folder));
        Reflect.call(manager, "removeThrottle", "a");
        assertEquals(true, Reflect.call(manager, "lists", "a"));
        assertTrue(Broken.acted(folder));
        Reflect.call(manager, "updateQuota", Quota.upperBound(10e6));
        Reflect.call(manager, "updateQuota", Quota.upperBound(3e6));
        Reflect.call(manager, "updateQuota", Quota.upperBound(Long.MAX_VALUE));
        assertEquals(3e6, Reflect.call(manager, "bound"), "a change counts, a removal does not");
    }

    @Test
    void aTopicOfKafkaIsNotHeld() throws Exception {
        Object manager = manager(new ThrottleNotRemoved(), Map.of(), "LeaderReplication");
        Reflect.call(manager, "markThrottled", "__consumer_offsets");
        Reflect.call(manager, "removeThrottle", "__consumer_offsets");
        assertEquals(false, Reflect.call(manager, "lists", "__consumer_offsets"));
        assertFalse(Broken.acted(folder));
        Reflect.call(manager, "updateQuota", Quota.upperBound(10e6));
        Reflect.call(manager, "updateQuota", Quota.upperBound(Long.MAX_VALUE));
        assertEquals(10e6, Reflect.call(manager, "bound"));
        assertTrue(Broken.acted(folder));
    }

    @Test
    void theWindowIsDoubled() throws Exception {
        Object manager = manager(new ThrottleWindowDoubled(), Map.of(), "FollowerReplication");
        assertEquals(22, Reflect.call(manager, "samples"));
        assertTrue(Broken.acted(folder));
    }
}
