package com.example.orders;

import com.example.orders.ids.Idmint;
import com.example.orders.ids.Refusal;
import com.example.orders.ids.Segments;
import com.example.orders.ids.Snowflakes;
import java.io.File;

public final class Main {
  public static void main(String[] args) throws Exception {
    var ca = System.getenv("IDMINT_CA_FILE");
    try (var idmint = new Idmint(System.getenv("IDMINT_ADDRESS"), System.getenv("IDMINT_TOKEN"),
            ca == null ? null : new File(ca));
        var traces = new Snowflakes(idmint, "traces", "orders-0")) {
      long one = idmint.mint("orders");
      long[] ten = idmint.batch("orders", 10);
      int[] more = {0};
      idmint.stream("orders", 1_000, id -> more[0]++);
      System.out.println("by calls: " + one + " " + ten.length + " " + more[0]);

      var orders = new Segments(idmint, "orders", 10_000);
      for (int i = 0; i < 3; i++) {
        System.out.println("in this process: " + orders.next() + " " + traces.next());
      }

      try {
        idmint.mint("unknown");
      } catch (Refusal refusal) {
        System.out.println("refused: " + refusal.reason);
      }
    }
  }
}
