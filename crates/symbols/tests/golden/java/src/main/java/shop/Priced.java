package shop;

public sealed interface Priced extends java.io.Serializable permits Order, Order.Note {
    String CURRENCY = "EUR";

    int total();

    default String label(boolean verbose) {
        return Status.OPEN.describe(total()) + CURRENCY;
    }

    static Priced free() {
        return () -> 0;
    }
}

@interface Audited {
    int level() default 1;

    String[] tags() default {};
}

enum Status implements java.util.function.Supplier<String> {
    OPEN {
        @Override
        String describe(int amount) {
            return "open " + amount;
        }
    },
    @Deprecated
    CLOSED("done");

    private final String word;

    Status(String... words) {
        this.word = words.length > 0 ? words[0] : "";
    }

    String describe(int amount) {
        return word + amount;
    }

    @Override
    public String get() {
        return word;
    }
}
