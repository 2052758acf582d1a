package mpjdev.examples;

import java.util.Arrays;
import mpjdev.Comm;
import mpjdev.ObjectReadBuffer;
import mpjdev.ObjectWriteBuffer;

/** Rank 0 sends numbers and a text to rank 1, which prints them. */
public class Hello {
    public static void main(String[] args) throws Exception {
        Comm.init(args);
        Comm world = Comm.WORLD;
        if (world.id() == 0) {
            ObjectWriteBuffer out = new ObjectWriteBuffer(64);
            out.write(new int[] {2, 3, 5}, 0, 3);
            out.write(new Object[] {"primes"}, 0, 1);
            world.send(out, 1, 0);
        } else if (world.id() == 1) {
            ObjectReadBuffer in = new ObjectReadBuffer(64);
            int[] numbers = new int[world.recv(in, 0, 0).count()];
            in.read(numbers, 0, numbers.length);
            Object[] name = new Object[1];
            in.read(name, 0, 1);
            System.out.println("rank 1 received " + name[0] + " " + Arrays.toString(numbers));
        }
        Comm.finish();
    }
}
