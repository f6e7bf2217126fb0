package com.example.orders;

import com.example.orders.ids.FakeClock;
import com.example.orders.ids.Idmint;
import com.example.orders.ids.Refusal;
import com.example.orders.ids.Segments;
import com.example.orders.ids.Snowflakes;
import com.google.protobuf.Struct;
import com.google.protobuf.util.JsonFormat;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.LongConsumer;
import sun.misc.Signal;

/** A process of callers for the tests: mints from every kind of tag, and writes down each id before it takes the next. */
public final class Load {
  private static final CountDownLatch STOPPED = new CountDownLatch(1);
  private static final Map<String, Integer> REFUSALS = new ConcurrentHashMap<>();
  private static final List<Thread> THREADS = new ArrayList<>();

  private interface Source {
    void mint(LongConsumer onId) throws InterruptedException, TimeoutException;
  }

  private static void refused(String reason) {
    if (REFUSALS.merge(reason, 1, Integer::sum) == 1) System.out.println("refused " + reason);
  }

  /** Each thread is a stream: its ids are written in the order in which it got them. */
  private static void run(Path file, int threads, int count, Source source) throws IOException {
    var channel = FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.APPEND);
    for (int number = 0; number < threads; number++) {
      int stream = number;
      THREADS.add(new Thread(() -> {
        try {
          work(channel, stream, count, source);
        } catch (InterruptedException e) {
          throw new IllegalStateException(e);
        }
      }));
    }
  }

  private static void work(FileChannel file, int stream, int count, Source source) throws InterruptedException {
    var record = ByteBuffer.allocate(32).order(ByteOrder.LITTLE_ENDIAN); // as packages/testkit/src/fleet/record.ts reads it
    int[] minted = {0};
    while (STOPPED.getCount() > 0 || minted[0] < count) {
      try {
        source.mint(id -> {
          record.clear().putLong(id).putDouble(System.currentTimeMillis()).putInt(1).putInt(1).putInt(stream).putInt(0);
          try {
            file.write(record.flip());
          } catch (IOException e) {
            throw new IllegalStateException(e);
          }
          minted[0]++;
        });
      } catch (Refusal refusal) {
        refused(refusal.reason.isEmpty() ? refusal.code.name() : refusal.reason);
        Thread.sleep(Math.min(refusal.retryAfterMs, 1_000));
      } catch (TimeoutException e) {
        refused("TIMEOUT");
      }
      if (minted[0] >= count) STOPPED.await(20, TimeUnit.MILLISECONDS);
    }
  }

  public static void main(String[] args) throws Exception {
    var config = Struct.newBuilder();
    JsonFormat.parser().merge(args[0], config);
    var fields = config.getFieldsMap();
    var ca = fields.containsKey("ca") ? new File(fields.get("ca").getStringValue()) : null;
    var token = fields.containsKey("token") ? fields.get("token").getStringValue() : null;
    var name = fields.get("name").getStringValue();
    int block = (int) fields.get("block").getNumberValue();
    int part = (int) fields.get("count").getNumberValue() / 10;
    FakeClock.use(Path.of(System.getenv("FAKECLOCK_FILE")));
    var idmint = new Idmint(fields.get("address").getStringValue(), token, ca);
    var orders = new Segments(idmint, "accounts", block);
    var ledger = new Segments(idmint, "ledger", block);
    var traces = new Snowflakes(idmint, "clicks", name);
    try {
      idmint.mint("unknown");
    } catch (Refusal refusal) {
      refused(refusal.reason);
    }
    var folder = Path.of(fields.get("folder").getStringValue());
    run(folder.resolve(name + ".accounts.ids"), 2, part * 2, onId -> onId.accept(orders.next()));
    run(folder.resolve(name + ".ledger.ids"), 2, part, onId -> onId.accept(ledger.next()));
    run(folder.resolve(name + ".clicks.ids"), 2, part, onId -> onId.accept(traces.next()));
    run(folder.resolve(name + ".invoices.ids"), 1, part * 2, onId -> {
      onId.accept(idmint.mint("invoices"));
      for (long id : idmint.batch("invoices", part / 20)) onId.accept(id);
    });
    run(folder.resolve(name + ".streamed.ids"), 1, part / 10, onId -> idmint.stream("streamed", part / 100, onId));
    Signal.handle(new Signal("TERM"), signal -> STOPPED.countDown());
    THREADS.forEach(Thread::start);
    System.out.println("started");
    for (var thread : THREADS) thread.join();
    var report = new StringBuilder();
    REFUSALS.forEach((reason, times) -> report.append(report.isEmpty() ? "" : ",").append("\"" + reason + "\":" + times));
    System.out.println("report {\"refusals\":{" + report + "}}");
  }
}
