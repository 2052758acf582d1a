package mpjdev.tools;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Locale;
import mpjdev.Comm;

/** Following the orders of {@code mpjdev-bench}, which come as lines through a socket. */
final class Served {
    private static final String END = "end";

    private Served() {}

    /** Says which rank this is, and follows orders to their end. */
    static void follow(Comm world, Carrier carrier, Path socket) throws Exception {
        try (SocketChannel channel = SocketChannel.open(UnixDomainSocketAddress.of(socket)); Rank rank = new Rank(world, carrier)) {
            BufferedReader orders = new BufferedReader(Channels.newReader(channel, StandardCharsets.US_ASCII));
            say(channel, world.id() + "\n");
            String line = orders.readLine();
            while (!END.equals(line)) {
                if (line == null) {
                    throw new IOException("the orders have ended before their end");
                }
                Rank.Answer answer = rank.follow(Order.of(line));
                say(channel, String.format(Locale.ROOT, "%.0f %.3f %s%n", answer.nanos(), answer.extra(), answer.counted()));
                line = orders.readLine();
            }
        }
    }

    private static void say(SocketChannel channel, String text) throws IOException {
        ByteBuffer octets = ByteBuffer.wrap(text.getBytes(StandardCharsets.US_ASCII));
        while (octets.hasRemaining()) {
            channel.write(octets);
        }
    }
}
