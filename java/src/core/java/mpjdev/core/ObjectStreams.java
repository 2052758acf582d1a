package mpjdev.core;

import java.io.IOException;
import java.io.InputStream;
import java.io.InvalidClassException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.ObjectStreamClass;
import java.io.ObjectStreamConstants;
import java.io.OutputStream;

/** Object streams in the secondary payload of a message. Internal. */
public final class ObjectStreams {
    private ObjectStreams() {}

    /** A stream under a filter that finds classes through the thread's context loader first. */
    public static final class Reader extends ObjectInputStream {
        private final MessageFilter filter;
        private final HashWork work;

        /**
         * Begins to read a payload.
         *
         * @param in the payload
         * @param filter the filter of this payload
         * @throws IOException if the payload does not begin as a stream does
         */
        public Reader(InputStream in, MessageFilter filter) throws IOException {
            super(in);
            this.filter = filter;
            work = filter.work();
            setObjectInputFilter(filter);
            enableResolveObject(true);
        }

        /**
         * Returns the next object.
         *
         * @return the object, may be null
         * @throws IOException if the stream is damaged or a filter rejects it; the exception of a built-in
         *     limit names that limit
         * @throws ClassNotFoundException if a class does not exist
         */
        public Object next() throws IOException, ClassNotFoundException {
            try {
                return readObject();
            } catch (InvalidClassException e) {
                if (filter.reason() == null) {
                    throw e;
                }
                InvalidClassException rejected = new InvalidClassException(e.classname, filter.reason());
                rejected.initCause(e);
                throw rejected;
            }
        }

        @Override
        protected Object resolveObject(Object object) throws IOException {
            // A class may resolve its objects to null.
            if (object == null || work.isUncounted(object)) {
                return object;
            }
            work.add(object);
            if (work.isTooMuch()) {
                throw new InvalidClassException(object.getClass().getName(), work.reason());
            }
            return object;
        }

        @Override
        protected Class<?> resolveClass(ObjectStreamClass description) throws IOException, ClassNotFoundException {
            ClassLoader loader = Thread.currentThread().getContextClassLoader();
            if (loader != null) {
                try {
                    return Class.forName(description.getName(), false, loader);
                } catch (ClassNotFoundException e) {
                    // Primitive types, and classes that only the caller's loader finds.
                    return super.resolveClass(description);
                }
            }
            return super.resolveClass(description);
        }

        @Override
        protected Class<?> resolveProxyClass(String[] interfaces) throws IOException, ClassNotFoundException {
            ClassLoader loader = Thread.currentThread().getContextClassLoader();
            if (loader != null) {
                try {
                    // This works for public interfaces of one loader; the platform handles all others.
                    Class<?>[] faces = new Class<?>[interfaces.length];
                    for (int i = 0; i < interfaces.length; i++) {
                        faces[i] = Class.forName(interfaces[i], false, loader);
                    }
                    return java.lang.reflect.Proxy.newProxyInstance(loader, faces, (proxy, method, args) -> null).getClass();
                } catch (ClassNotFoundException | IllegalArgumentException e) {
                    return super.resolveProxyClass(interfaces);
                }
            }
            return super.resolveProxyClass(interfaces);
        }
    }

    /**
     * Begins to write a payload, or continues one.
     *
     * @param out end of the payload
     * @param written octets of the payload so far
     * @return the stream
     * @throws IOException never by itself
     */
    public static ObjectOutputStream writer(OutputStream out, long written) throws IOException {
        return written == 0 ? new ObjectOutputStream(out) : new ContinuedStream(out);
    }

    /**
     * A stream that continues a payload. Its reset code makes the reader forget the objects that it has read.
     */
    private static final class ContinuedStream extends ObjectOutputStream {
        ContinuedStream(OutputStream out) throws IOException {
            super(reset(out));
        }

        private static OutputStream reset(OutputStream out) throws IOException {
            out.write(ObjectStreamConstants.TC_RESET);
            return out;
        }

        @Override
        protected void writeStreamHeader() {
            // The payload has a header.
        }
    }
}
