package com.example.orders;

import static io.grpc.MethodDescriptor.MethodType.BIDI_STREAMING;
import static io.grpc.MethodDescriptor.MethodType.UNARY;

import com.google.protobuf.Struct;
import com.google.protobuf.Value;
import com.google.protobuf.util.JsonFormat;
import io.grpc.CallOptions;
import io.grpc.ClientInterceptors;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.TlsChannelCredentials;
import io.grpc.stub.ClientCallStreamObserver;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ClientResponseObserver;
import io.grpc.stub.MetadataUtils;
import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/** A caller for the tests that knows nothing of ids: it does the steps of its command line, and prints a line of JSON for each. */
public final class Caller {
  private static final ScheduledExecutorService LATER = Executors.newSingleThreadScheduledExecutor();
  private static ManagedChannel channel;

  private static final MethodDescriptor.Marshaller<byte[]> RAW = new MethodDescriptor.Marshaller<>() {
    @Override
    public InputStream stream(byte[] value) {
      return new ByteArrayInputStream(value);
    }

    @Override
    public byte[] parse(InputStream stream) {
      try {
        return stream.readAllBytes();
      } catch (IOException e) {
        throw new IllegalStateException(e);
      }
    }
  };

  private final Map<String, Value> step;
  private final byte[] message;
  private final int calls;
  private final List<String> answers = new ArrayList<>();
  private final Map<Integer, Integer> ends = new TreeMap<>();
  private final TreeSet<String> texts = new TreeSet<>();
  private int retried;

  private Caller(Struct step) {
    this.step = step.getFieldsMap();
    this.message = HexFormat.of().parseHex(this.step.get("message").getStringValue());
    this.calls = (int) number("calls");
  }

  private long number(String name) {
    return (long) step.get(name).getNumberValue();
  }

  private boolean is(String name) {
    return step.get(name).getBoolValue();
  }

  /** Sends the message so many times in one call; `done` gets a permit when it ends, and was made again so often at most. */
  private void call(int messages, boolean isStream, Semaphore done, long retries) {
    var method = MethodDescriptor.newBuilder(RAW, RAW).setType(isStream ? BIDI_STREAMING : UNARY)
        .setFullMethodName(step.get("method").getStringValue()).build();
    var options = CallOptions.DEFAULT.withDeadlineAfter(number("timeoutMs"), TimeUnit.MILLISECONDS);
    if (is("gzip")) options = options.withCompression("gzip");
    var headers = new Metadata();
    if (number("metadataBytes") > 0) {
      headers.put(Metadata.Key.of("x-large", Metadata.ASCII_STRING_MARSHALLER), "x".repeat((int) number("metadataBytes")));
    }
    var with = ClientInterceptors.intercept(channel, MetadataUtils.newAttachHeadersInterceptor(headers));
    var observer = new ClientResponseObserver<byte[], byte[]>() {
      private ClientCallStreamObserver<byte[]> requests;
      private int got;

      @Override
      public void beforeStart(ClientCallStreamObserver<byte[]> stream) {
        requests = stream;
        if (number("cancelAfterMs") == 0) return;
        LATER.schedule(() -> stream.cancel("enough", null), number("cancelAfterMs"), TimeUnit.MILLISECONDS);
      }

      @Override
      public void onNext(byte[] answer) {
        synchronized (Caller.this) {
          answers.add('"' + HexFormat.of().formatHex(answer) + '"');
        }
        if (isStream && ++got == messages) requests.onCompleted();
      }

      @Override
      public void onError(Throwable failure) {
        ended(Status.fromThrowable(failure));
      }

      @Override
      public void onCompleted() {
        ended(Status.OK);
      }

      private void ended(Status status) {
        boolean again = retries > 0 && status.getCode() == Status.Code.UNAVAILABLE;
        synchronized (Caller.this) {
          if (again) retried++;
        }
        if (again) {
          call(messages, isStream, done, retries - 1);
          return;
        }
        synchronized (Caller.this) {
          ends.merge(status.getCode().value(), 1, Integer::sum);
          if (!status.isOk()) texts.add(String.valueOf(status.getDescription()));
        }
        done.release();
      }
    };
    if (!isStream) {
      ClientCalls.asyncUnaryCall(with.newCall(method, options), message, observer);
      return;
    }
    var requests = ClientCalls.asyncBidiStreamingCall(with.newCall(method, options), observer);
    for (int i = 0; i < messages; i++) requests.onNext(message);
  }

  /** Calls one after the other, as many at a time as there are calls, for so long. */
  private void fly() throws InterruptedException {
    long end = System.nanoTime() + number("forMs") * 1_000_000;
    var workers = new ArrayList<Thread>();
    for (int i = 0; i < calls; i++) {
      workers.add(new Thread(() -> {
        var done = new Semaphore(0);
        while (System.nanoTime() - end < 0) {
          call(1, false, done, number("retries"));
          done.acquireUninterruptibly();
          java.util.concurrent.locks.LockSupport.parkNanos(20_000_000);
        }
      }));
    }
    workers.forEach(Thread::start);
    for (var worker : workers) worker.join();
    while (System.nanoTime() - end < 0) Thread.sleep(10);
  }

  private void run() throws Exception {
    System.out.println("begun");
    var done = new Semaphore(0);
    if (number("forMs") > 0) fly();
    else if (is("isStream")) {
      call(calls, true, done, 0);
      done.acquire();
    } else {
      for (int i = 0; i < calls; i++) call(1, false, done, 0);
      done.acquire(calls);
    }
    var counts = new ArrayList<String>();
    ends.forEach((code, times) -> counts.add("\"" + code + "\":" + times));
    var said = new ArrayList<String>();
    for (var text : texts) said.add(JsonFormat.printer().print(Value.newBuilder().setStringValue(text)));
    System.out.println("seen {\"answers\":" + answers + ",\"ends\":{" + String.join(",", counts) + "},\"texts\":" + said
        + ",\"retried\":" + retried + "}");
  }

  public static void main(String[] args) throws Exception {
    var config = Struct.newBuilder();
    JsonFormat.parser().merge(args[0], config);
    var fields = config.getFieldsMap();
    var ca = fields.get("ca").getStringValue();
    var credentials = ca.isEmpty() ? InsecureChannelCredentials.create()
        : TlsChannelCredentials.newBuilder().trustManager(new File(ca)).build();
    var builder = Grpc.newChannelBuilder(fields.get("address").getStringValue(), credentials);
    long keepaliveMs = (long) fields.get("keepaliveMs").getNumberValue();
    if (keepaliveMs > 0) builder.keepAliveTime(keepaliveMs, TimeUnit.MILLISECONDS).keepAliveWithoutCalls(true);
    channel = builder.build();
    for (var each : fields.get("steps").getListValue().getValuesList()) new Caller(each.getStructValue()).run();
    channel.shutdownNow().awaitTermination(5, TimeUnit.SECONDS);
    LATER.shutdownNow();
  }
}
