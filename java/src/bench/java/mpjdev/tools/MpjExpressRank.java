package mpjdev.tools;

import java.nio.file.Path;
import mpi.Intracomm;
import mpi.MPI;

/**
 * A rank that executes the collective calls of {@code mpjdev-bench} under MPJ Express.
 *
 * <p>It is compiled against our package mpi and uses nothing else of mpjdev, since package mpi of its class
 * path is that of MPJ Express.
 */
public final class MpjExpressRank {
    private final Intracomm world = MPI.COMM_WORLD;
    /** The calls of the latest command, for repetitions. */
    private CollectiveCalls calls;
    private String word;
    private int octets;

    private MpjExpressRank() {}

    /** Executes a command, as {@link Rank} does. */
    private Answer run(RunCommand command) {
        if (!command.word().equals(word) || command.octets() != octets) {
            calls = CollectiveCalls.of(command.word(), world, command.octets());
            word = command.word();
            octets = command.octets();
        }
        world.Barrier();
        calls.run(command.times() / 8 + 1);
        calls.run(command.times());
        world.Barrier();
        return new Answer(calls.nanos(), calls.extra(), "");
    }

    /** A launcher that was killed leaves its JVM behind, in which ranks may wait for each other. */
    private static void endWithLauncher() {
        ProcessHandle.current().parent().ifPresent(launcher ->
                launcher.onExit().thenRun(() -> Runtime.getRuntime().halt(1)));
    }

    /**
     * Executes the commands of a socket until the last one.
     *
     * @param args words of the launcher, which {@code MPI.Init} takes, and the path of the socket
     * @throws Exception when a command cannot be read or executed
     */
    public static void main(String[] args) throws Exception {
        endWithLauncher();
        String[] own = MPI.Init(args);
        MpjExpressRank rank = new MpjExpressRank();
        CommandSocket.serve(rank.world.Rank(), rank::run, Path.of(own[0]));
        MPI.Finalize();
    }
}
