package mpjdev.bench;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A reader of JSON into maps, lists, texts, doubles, booleans and null, for the files of JMH. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /**
     * Reads one value.
     *
     * @throws IllegalArgumentException if the text is no JSON; the exception names the offset
     */
    static Object parse(String text) {
        Json json = new Json(text);
        Object value = json.value();
        json.space();
        if (json.at < text.length()) {
            throw json.wrong("the end");
        }
        return value;
    }

    /** Returns a text as a JSON string. */
    static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }

    private Object value() {
        space();
        char c = at < text.length() ? text.charAt(at) : 0;
        switch (c) {
            case '{':
                return object();
            case '[':
                return list();
            case '"':
                return string();
            case 't':
                return word("true", true);
            case 'f':
                return word("false", false);
            case 'n':
                return word("null", null);
            default:
                return number();
        }
    }

    private Map<String, Object> object() {
        Map<String, Object> map = new LinkedHashMap<>();
        at++;
        while (!closed('}', map.isEmpty())) {
            space();
            String key = string();
            space();
            expect(':');
            map.put(key, value());
        }
        return map;
    }

    private List<Object> list() {
        List<Object> list = new ArrayList<>();
        at++;
        while (!closed(']', list.isEmpty())) {
            list.add(value());
        }
        return list;
    }

    /**
     * Skips the end of an object or list, or the comma before a further member. Returns whether it was the
     * end.
     */
    private boolean closed(char end, boolean first) {
        space();
        if (at < text.length() && text.charAt(at) == end) {
            at++;
            return true;
        }
        if (!first) {
            expect(',');
        }
        return false;
    }

    private String string() {
        expect('"');
        StringBuilder out = new StringBuilder();
        while (at < text.length() && text.charAt(at) != '"') {
            char c = text.charAt(at++);
            out.append(c == '\\' ? escaped() : c);
        }
        expect('"');
        return out.toString();
    }

    private char escaped() {
        char c = at < text.length() ? text.charAt(at++) : 0;
        switch (c) {
            case 'n':
                return '\n';
            case 't':
                return '\t';
            case 'r':
                return '\r';
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'u':
                at += 4;
                return (char) Integer.parseInt(text.substring(at - 4, at), 16);
            default:
                return c;
        }
    }

    private Double number() {
        int start = at;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        if (start == at) {
            throw wrong("a value");
        }
        return Double.valueOf(text.substring(start, at));
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) {
            throw wrong(word);
        }
        at += word.length();
        return value;
    }

    private void expect(char c) {
        if (at >= text.length() || text.charAt(at) != c) {
            throw wrong("'" + c + "'");
        }
        at++;
    }

    private void space() {
        while (at < text.length() && Character.isWhitespace(text.charAt(at))) {
            at++;
        }
    }

    private IllegalArgumentException wrong(String wanted) {
        return new IllegalArgumentException("at offset " + at + " there should be " + wanted);
    }
}
