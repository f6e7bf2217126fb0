package com.example.orders.ids;

import io.grpc.CallCredentials;
import io.grpc.ChannelCredentials;
import io.grpc.CompositeChannelCredentials;
import io.grpc.Deadline;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.TlsChannelCredentials;
import io.grpc.stub.StreamObserver;
import io.idmint.v1.GenerateIdRequest;
import io.idmint.v1.GenerateIdsRequest;
import io.idmint.v1.IdServiceGrpc;
import io.idmint.v1.StreamIdsRequest;
import io.idmint.v1.StreamIdsResponse;
import io.idmint.v1.WorkerServiceGrpc;
import java.io.File;
import java.io.IOException;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.LongConsumer;
import java.util.stream.LongStream;

/** Calls to idmint over one connection. */
public final class Idmint implements AutoCloseable {
  /** Of a call with all its tries. */
  static final long TIMEOUT_MS = 5_000;
  /** Requests on a stream without an answer; a server takes 1,024. */
  private static final int IN_FLIGHT = 100;

  final IdServiceGrpc.IdServiceBlockingStub ids;
  final WorkerServiceGrpc.WorkerServiceBlockingStub workers;
  private final ManagedChannel channel;

  /** With TLS and a token, where {@code ca} is the PEM of an authority of your own, or without both. */
  public Idmint(String address, String token, File ca) throws IOException {
    ChannelCredentials credentials = InsecureChannelCredentials.create();
    if (token != null || ca != null) {
      var tls = TlsChannelCredentials.newBuilder();
      credentials = (ca == null ? tls : tls.trustManager(ca)).build();
    }
    if (token != null) credentials = CompositeChannelCredentials.create(credentials, new Bearer(token));
    channel = Grpc.newChannelBuilder(address, credentials).build();
    ids = IdServiceGrpc.newBlockingStub(channel);
    workers = WorkerServiceGrpc.newBlockingStub(channel);
  }

  @Override
  public void close() {
    channel.shutdownNow();
  }

  private static final class Bearer extends CallCredentials {
    private final Metadata headers = new Metadata();

    Bearer(String token) {
      headers.put(Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER), "Bearer " + token);
    }

    @Override
    public void applyRequestMetadata(RequestInfo request, Executor executor, MetadataApplier applier) {
      applier.apply(headers);
    }
  }

  /** Mints one id. */
  public long mint(String tag) throws InterruptedException {
    var request = GenerateIdRequest.newBuilder().setTag(tag).build();
    return call(TIMEOUT_MS, end -> ids.withDeadline(end).generateId(request)).getId();
  }

  /** Mints ids in one call. They travel as ranges. */
  public long[] batch(String tag, int count) throws InterruptedException {
    var request = GenerateIdsRequest.newBuilder().setTag(tag).setCount(count).build();
    var answer = call(TIMEOUT_MS, end -> ids.withDeadline(end).generateIds(request));
    return answer.getSegmentsList().stream()
        .flatMapToLong(s -> LongStream.range(0, s.getCount()).map(i -> s.getBase() + i * s.getIncrement()))
        .toArray();
  }

  /** Mints ids by one small request each on one stream, and passes each on. When it breaks, ask again for the rest. */
  public void stream(String tag, int count, LongConsumer onId) throws InterruptedException {
    var answers = new LinkedBlockingQueue<Object>(); // an error is the last of them; the deadline is one too
    var observer = new StreamObserver<StreamIdsResponse>() {
      @Override
      public void onNext(StreamIdsResponse answer) {
        answers.add(answer);
      }

      @Override
      public void onError(Throwable failure) {
        answers.add(failure);
      }

      @Override
      public void onCompleted() {
        answers.add(Status.UNAVAILABLE.asRuntimeException());
      }
    };
    var stub = IdServiceGrpc.newStub(channel).withDeadlineAfter(TIMEOUT_MS, TimeUnit.MILLISECONDS);
    var requests = stub.streamIds(observer);
    int sent = 0;
    try {
      for (int got = 0; got < count; got++) {
        for (; sent < count && sent - got < IN_FLIGHT; sent++) {
          requests.onNext(StreamIdsRequest.newBuilder().setCall(sent).setTag(tag).build());
        }
        var next = answers.take();
        if (next instanceof Exception failure) throw Refusal.of(failure);
        var answer = (StreamIdsResponse) next;
        if (answer.hasError()) throw Refusal.of(answer.getError());
        onId.accept(answer.getOne().getId());
      }
    } finally {
      requests.onError(Status.CANCELLED.asRuntimeException());
    }
  }

  /** Only UNAVAILABLE may be retried, after the time in RetryInfo. The new answer has other ids. */
  <A> A call(long timeoutMs, Function<Deadline, A> send) throws InterruptedException {
    var end = Deadline.after(timeoutMs, TimeUnit.MILLISECONDS);
    while (true) {
      try {
        return send.apply(end);
      } catch (StatusRuntimeException e) {
        var refusal = Refusal.of(e);
        boolean isOver = end.timeRemaining(TimeUnit.MILLISECONDS) <= refusal.retryAfterMs;
        if (refusal.code != Status.Code.UNAVAILABLE || isOver) throw refusal;
        channel.resetConnectBackoff(); // which grows to two minutes
        Thread.sleep(refusal.retryAfterMs);
      }
    }
  }
}
