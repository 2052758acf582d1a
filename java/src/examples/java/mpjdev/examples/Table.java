package mpjdev.examples;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Text in columns: the first is aligned left, the others hold numbers and are aligned right. */
final class Table {
    private static final String GAP = "  ";

    private final List<String[]> rows = new ArrayList<>();

    Table(String... titles) {
        rows.add(titles);
    }

    void row(String title, long... numbers) {
        String[] cells = new String[numbers.length + 1];
        cells[0] = title;
        for (int k = 0; k < numbers.length; k++) {
            cells[k + 1] = String.format(Locale.ROOT, "%,d", numbers[k]);
        }
        rows.add(cells);
    }

    void row(String... cells) {
        rows.add(cells);
    }

    @Override
    public String toString() {
        int[] widths = new int[rows.get(0).length];
        for (String[] row : rows) {
            for (int column = 0; column < row.length; column++) {
                widths[column] = Math.max(widths[column], row[column].length());
            }
        }
        StringBuilder text = new StringBuilder();
        for (String[] row : rows) {
            StringBuilder line = new StringBuilder();
            for (int column = 0; column < row.length; column++) {
                String space = " ".repeat(widths[column] - row[column].length());
                line.append(GAP).append(column == 0 ? row[column] + space : space + row[column]);
            }
            text.append(line).append(System.lineSeparator());
        }
        return text.toString();
    }
}
