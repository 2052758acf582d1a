package mpjdev.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ObjectInputFilter;
import java.io.ObjectInputFilter.Status;
import java.util.ArrayList;
import java.util.List;
import mpjdev.Fork;
import org.junit.jupiter.api.Test;

/** Limits and the three filters of a message: each can reject, and no allowance lifts a limit. */
class MessageFilterTest {
    private static final Status[] STATUSES = {Status.ALLOWED, Status.REJECTED, Status.UNDECIDED};

    /** One class for each pair of results of the filter of the JVM and the configured one. */
    private static final Class<?>[] CLASSES = {Byte.class, Short.class, Integer.class, Long.class, Float.class,
        Double.class, Character.class, Boolean.class, String.class};

    /** The information that a stream gives its filter. */
    private static final class Info implements ObjectInputFilter.FilterInfo {
        private final Class<?> type;
        private final long arrayLength;
        private final long depth;

        Info(Class<?> type, long arrayLength, long depth) {
            this.type = type;
            this.arrayLength = arrayLength;
            this.depth = depth;
        }

        @Override
        public Class<?> serialClass() {
            return type;
        }

        @Override
        public long arrayLength() {
            return arrayLength;
        }

        @Override
        public long depth() {
            return depth;
        }

        @Override
        public long references() {
            return 1;
        }

        @Override
        public long streamBytes() {
            return 1;
        }
    }

    /** Without a filter of the user, and with one of each result. */
    private static void check(Status limits, long payload, Info info) {
        assertSame(limits, new MessageFilter(null, payload).checkInput(info));
        for (Status user : STATUSES) {
            Status expected = limits == Status.REJECTED ? limits : user;
            assertSame(expected, new MessageFilter(any -> user, payload).checkInput(info), "user " + user);
        }
    }

    @Test
    void shouldRejectArraysOfMoreElementsThanThePayloadHasOctets() {
        for (long payload : new long[] {0, 1, 100, 1L << 40}) {
            check(Status.UNDECIDED, payload, new Info(byte[].class, payload, 1));
            check(Status.REJECTED, payload, new Info(byte[].class, payload + 1, 1));
            check(Status.REJECTED, payload, new Info(Object[].class, Long.MAX_VALUE, 1));
            // A value that is no array has length -1.
            check(Status.UNDECIDED, payload, new Info(String.class, -1, 1));
            check(Status.UNDECIDED, payload, new Info(null, -1, 1));
        }
    }

    @Test
    void shouldRejectGraphsDeeperThanAThousandReferences() {
        check(Status.UNDECIDED, 100, new Info(Object.class, -1, 1000));
        check(Status.REJECTED, 100, new Info(Object.class, -1, 1001));
        check(Status.REJECTED, 100, new Info(Object.class, -1, Long.MAX_VALUE));
    }

    @Test
    void shouldPassTheInformationOfTheStreamToTheUsersFilter() {
        List<ObjectInputFilter.FilterInfo> shown = new ArrayList<>();
        Info info = new Info(int[].class, 5, 2);
        new MessageFilter(each -> {
            shown.add(each);
            return Status.UNDECIDED;
        }, 100).checkInput(info);
        assertEquals(List.of(info), shown);
    }

    /** Checks all 36 combinations of results, in a JVM whose two other filters are set. */
    static final class Combine {
        private Combine() {}

        public static void main(String[] args) {
            int depth = Integer.parseInt(args[0]);
            for (int i = 0; i < CLASSES.length; i++) {
                Info info = new Info(CLASSES[i], -1, depth);
                assertSame(combined(whole(i), configured(i)), new MessageFilter(null, 8).checkInput(info));
                for (Status user : STATUSES) {
                    assertSame(combined(user, whole(i), configured(i)),
                            new MessageFilter(any -> user, 8).checkInput(info),
                            "user " + user + ", configured " + configured(i) + ", JVM " + whole(i));
                    assertSame(Status.REJECTED,
                            new MessageFilter(any -> user, 8).checkInput(new Info(CLASSES[i], -1, depth + 1)));
                    assertSame(Status.REJECTED,
                            new MessageFilter(any -> user, 8).checkInput(new Info(CLASSES[i], 9, depth)));
                }
            }
            System.out.println("all combined");
        }

        private static Status combined(Status... statuses) {
            List<Status> all = List.of(statuses);
            return all.contains(Status.REJECTED) ? Status.REJECTED
                    : all.contains(Status.ALLOWED) ? Status.ALLOWED : Status.UNDECIDED;
        }
    }

    private static Status whole(int i) {
        return STATUSES[i / 3];
    }

    private static Status configured(int i) {
        return STATUSES[i % 3];
    }

    private static String patternPart(Class<?> type, Status status) {
        return status == Status.UNDECIDED ? "" : (status == Status.REJECTED ? "!" : "") + type.getName() + ";";
    }

    @Test
    void shouldPreferRejectionOverAllowance() throws Exception {
        StringBuilder whole = new StringBuilder();
        StringBuilder configured = new StringBuilder();
        for (int i = 0; i < CLASSES.length; i++) {
            whole.append(patternPart(CLASSES[i], whole(i)));
            configured.append(patternPart(CLASSES[i], configured(i)));
        }
        String output = new Fork().with("-Djdk.serialFilter=" + whole, "-Dmpjdev.filter=" + configured,
                "-Dmpjdev.filter.depth=3").run(Combine.class, "3").ok();
        assertTrue(output.contains("all combined"), output);
    }
}
