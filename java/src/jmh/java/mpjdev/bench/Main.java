package mpjdev.bench;

import java.io.FileNotFoundException;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.openjdk.jmh.runner.NoBenchmarksException;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.format.OutputFormat;
import org.openjdk.jmh.runner.format.OutputFormatFactory;
import org.openjdk.jmh.runner.options.CommandLineOptionException;
import org.openjdk.jmh.runner.options.CommandLineOptions;
import org.openjdk.jmh.runner.options.VerboseMode;

/**
 * JMH with its command line and its JSON. Its output goes to a file, and one line for each benchmark to the
 * terminal.
 */
public final class Main {
    private Main() {}

    /**
     * Runs the benchmarks.
     *
     * @param args the file for JMH's own output, then options of JMH
     * @throws FileNotFoundException if the file cannot be written
     */
    public static void main(String[] args) throws FileNotFoundException {
        String[] options = Arrays.copyOfRange(args, 1, args.length);
        try (PrintStream log = new PrintStream(new FileOutputStream(args[0]), true, StandardCharsets.UTF_8)) {
            OutputFormat full = OutputFormatFactory.createFormatInstance(log, VerboseMode.NORMAL);
            new Runner(new CommandLineOptions(options), new Progress(full, System.out)).run();
        } catch (NoBenchmarksException e) {
            System.out.println("No JMH benchmark matches.");
        } catch (RunnerException | CommandLineOptionException e) {
            System.err.println(e.getMessage() + " (full output of JMH: " + args[0] + ")");
            System.exit(1);
        }
    }
}
