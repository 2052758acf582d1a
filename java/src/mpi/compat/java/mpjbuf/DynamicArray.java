package mpjbuf;

import java.io.Serializable;

/** The elements of a section of a dynamic type, in the stream of objects. */
final class DynamicArray implements Serializable {
    private static final long serialVersionUID = 1L;

    /** Code of the type of the elements. */
    final int element;
    /** An array of exactly the elements. */
    final Object elements;

    DynamicArray(int element, Object elements) {
        this.element = element;
        this.elements = elements;
    }
}
