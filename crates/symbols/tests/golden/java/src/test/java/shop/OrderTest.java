package shop;

import org.junit.jupiter.api.Test;

class OrderTest {
    @Test
    void an_order_has_a_total() {
        new Order<String>("1").total();
    }
}
