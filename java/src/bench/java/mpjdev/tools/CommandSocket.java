package mpjdev.tools;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/** Socket through which the commands of {@code mpjdev-bench} arrive as lines. */
final class CommandSocket {
    private static final String END = "end";

    private CommandSocket() {}

    /** Executor of commands. */
    interface Executor {
        /** Executes a command. */
        Answer run(RunCommand command) throws Exception;
    }

    /** States the rank, and executes commands until the last one. */
    static void serve(int rank, Executor executor, Path socket) throws Exception {
        try (SocketChannel channel = SocketChannel.open(UnixDomainSocketAddress.of(socket))) {
            BufferedReader commands = new BufferedReader(Channels.newReader(channel, StandardCharsets.US_ASCII));
            write(channel, rank + "\n");
            String line = commands.readLine();
            while (!END.equals(line)) {
                if (line == null) {
                    throw new IOException("the command socket was closed before the last command");
                }
                write(channel, executor.run(RunCommand.of(line)).line());
                line = commands.readLine();
            }
        }
    }

    private static void write(SocketChannel channel, String text) throws IOException {
        ByteBuffer octets = ByteBuffer.wrap(text.getBytes(StandardCharsets.US_ASCII));
        while (octets.hasRemaining()) {
            channel.write(octets);
        }
    }
}
