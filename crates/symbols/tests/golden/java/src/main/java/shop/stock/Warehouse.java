package shop.stock;

import java.util.*;

public final class Warehouse {
    public static final String DEFAULT_NAME = "main";

    private static final Comparator<String> BY_LENGTH = new Comparator<>() {
        @Override
        public int compare(String a, String b) {
            return a.length() - b.length();
        }
    };

    static {
        System.out.println(DEFAULT_NAME);
    }

    public synchronized boolean reserve(Collection<?> items) {
        return !items.isEmpty();
    }

    public native long count(int[][] shelves, Map<String, ? super Integer> sizes);

    // A line that does not parse costs only itself.
    int broken( = ;

    public int after() {
        return 1;
    }
}
