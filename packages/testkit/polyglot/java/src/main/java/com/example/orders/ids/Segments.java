package com.example.orders.ids;

import com.google.protobuf.util.Durations;
import io.grpc.Status.Code;
import io.idmint.v1.AllocateSegmentRequest;
import io.idmint.v1.AllocateSegmentResponse;
import io.idmint.v1.Order;
import io.idmint.v1.Segment;
import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Issues the ids of one tag of kind segment from memory, and gets the next block when a tenth of one is used.
 *
 * <p>1. The cursor passes an id before the id leaves, and never goes back.
 * <p>2. One load is under way at most. What a load that failed may have taken is never used.
 * <p>3. No id leaves under an epoch below the highest that was seen, or when its block is older than max_age.
 * <p>4. A block has no id that came before. With PER_CLIENT it lies above all that came before.
 */
public final class Segments {
  private final Idmint idmint;
  private final String tag;
  private final int count;
  // The lock of this guards all below.
  private final ArrayDeque<Block> held = new ArrayDeque<>();
  private final ArrayDeque<Range> received = new ArrayDeque<>(); // the last 1,000
  private long left; // ids in held
  private long epoch, highest;
  private boolean isLoading;
  private Refusal error; // why the last load failed
  private long retryAt = System.nanoTime();

  private record Range(long first, long last) {}

  /** Readings of both clocks, before a request was sent. The monotonic one may stand still in a suspended machine. */
  private record Sent(long nanos, long wallMs) {
    static Sent now() {
      return new Sent(System.nanoTime(), System.currentTimeMillis());
    }

    long ageMs(Sent now) {
      return Math.max(TimeUnit.NANOSECONDS.toMillis(now.nanos - nanos), now.wallMs - wallMs);
    }
  }

  private static final class Block {
    final Segment segment;
    final Sent sent;
    final long maxAgeMs;
    int used;

    Block(Segment segment, Sent sent, long maxAgeMs) {
      this.segment = segment;
      this.sent = sent;
      this.maxAgeMs = maxAgeMs;
    }
  }

  /** Takes {@code count} ids at a time. */
  public Segments(Idmint idmint, String tag, int count) {
    this.idmint = idmint;
    this.tag = tag;
    this.count = count;
  }

  /** The next id, from memory or of the load under way. */
  public synchronized long next() throws InterruptedException, TimeoutException {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Idmint.TIMEOUT_MS);
    while (true) {
      long id = take();
      if (!isLoading && left * 10 <= count * 9L && System.nanoTime() - retryAt >= 0) {
        isLoading = true;
        long after = highest;
        var loader = new Thread(() -> load(after), "ids of " + tag);
        loader.setDaemon(true);
        loader.start();
      }
      if (id >= 0) return id;
      if (!isLoading) throw error;
      if (System.nanoTime() - end >= 0) throw new TimeoutException("no ids of " + tag + " in time");
      TimeUnit.NANOSECONDS.timedWait(this, end - System.nanoTime());
    }
  }

  private long take() {
    var now = Sent.now();
    for (Block block; (block = held.peek()) != null; held.remove()) {
      if (block.used < block.segment.getCount() && block.sent.ageMs(now) < block.maxAgeMs) {
        left--;
        return block.segment.getBase() + (long) block.used++ * block.segment.getIncrement();
      }
      left -= block.segment.getCount() - block.used;
    }
    return -1;
  }

  private void load(long after) {
    var request = AllocateSegmentRequest.newBuilder().setTag(tag).setCount(count).setAfter(after).build();
    var sent = Sent.now();
    AllocateSegmentResponse answer = null;
    Refusal failure = null;
    try {
      answer = idmint.call(Idmint.TIMEOUT_MS, end -> idmint.ids.withDeadline(end).allocateSegment(request));
    } catch (Refusal refusal) {
      failure = refusal;
    } catch (InterruptedException | RuntimeException e) {
      failure = invalid(Code.CANCELLED, e.toString());
    }
    synchronized (this) {
      error = answer == null ? failure : accept(answer, sent);
      if (error != null && (error.code == Code.FAILED_PRECONDITION || error.code == Code.NOT_FOUND)) drop();
      retryAt = System.nanoTime() + (error == null ? 0 : TimeUnit.MILLISECONDS.toNanos(error.retryAfterMs));
      isLoading = false;
      notifyAll();
    }
  }

  private static Refusal invalid(Code code, String message) {
    return new Refusal(code, "SEGMENT_INVALID", message, 100);
  }

  private void drop() {
    held.clear();
    left = 0;
  }

  private Refusal accept(AllocateSegmentResponse answer, Sent sent) {
    if (answer.getEpoch() < epoch) return invalid(Code.UNAVAILABLE, "this server has not heard of the newer epoch yet");
    if (answer.getEpoch() > epoch) drop();
    epoch = answer.getEpoch();
    long above = answer.getOrder() == Order.ORDER_UNORDERED ? -1 : highest;
    boolean isBad = answer.getSegmentsCount() == 0;
    for (var s : answer.getSegmentsList()) {
      long first = s.getBase(), last = first + (s.getCount() - 1L) * s.getIncrement();
      isBad |= s.getCount() < 1 || s.getIncrement() < 1 || first <= above || last < first;
      isBad |= received.stream().anyMatch(range -> first <= range.last && range.first <= last);
      above = last;
      highest = Math.max(highest, last);
      received.add(new Range(first, last));
      if (received.size() > 1_000) received.remove();
    }
    if (isBad) return invalid(Code.FAILED_PRECONDITION, "the server answered ids that came before, or malformed segments");
    for (var s : answer.getSegmentsList()) {
      held.add(new Block(s, sent, Durations.toMillis(answer.getMaxAge())));
      left += s.getCount();
    }
    return null;
  }
}
