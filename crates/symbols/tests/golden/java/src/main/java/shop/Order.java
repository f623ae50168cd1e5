package shop;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import shop.stock.Warehouse;
import static shop.stock.Warehouse.DEFAULT_NAME;

/** An order with an inner class, a nested record and generic methods. */
@Audited(level = 2, tags = {"order"})
public class Order<T extends Comparable<T>> extends Document implements Priced, Comparable<Order<T>> {
    public static final int LIMIT = 100;
    private final List<Line> lines = new ArrayList<>();
    protected int first, second[];

    public Order(String id) {
        super(id);
    }

    @Override
    public int compareTo(Order<T> other) {
        return Integer.compare(total(), other.total());
    }

    @Override
    public int total() {
        return lines.stream().mapToInt(Line::price).sum();
    }

    public <R, S extends R> Function<? super T, ? extends R> mapper(final Class<S> type, T... values) throws Exception {
        class Local {
            int unseen() {
                return 0;
            }
        }
        return value -> type.cast(new Local().unseen());
    }

    void ship(Warehouse warehouse) {
        warehouse.reserve(lines);
        new Runnable() {
            @Override
            public void run() {
                total();
            }
        }.run();
    }

    /** Knows its order. */
    class Line {
        int price() {
            return Order.this.first;
        }
    }

    record Note(String text, int page) implements Priced {
        static final Note EMPTY = new Note("", 0);

        Note {
            if (page < 0) throw new IllegalArgumentException(text);
        }

        public int total() {
            return 0;
        }
    }
}

abstract class Document {
    private final String id;

    Document(String id) {
        this.id = id;
    }

    abstract int total();
}
