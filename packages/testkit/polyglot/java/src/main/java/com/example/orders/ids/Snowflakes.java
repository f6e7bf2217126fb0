package com.example.orders.ids;

import com.google.protobuf.util.Durations;
import com.google.protobuf.util.Timestamps;
import io.grpc.Status.Code;
import io.idmint.v1.LeaseWorkerRequest;
import io.idmint.v1.LeaseWorkerResponse;
import io.idmint.v1.RenewWorkerLeaseRequest;
import io.idmint.v1.SnowflakeLayout;
import java.util.function.LongSupplier;

/**
 * Makes the ids of one tag of kind snowflake under a leased worker id. Two that run may not have one instance.
 *
 * <p>1. Tick and sequence only rise under a lease, and they pass an id before it leaves. A tick whose sequences are used
 * up is left before the clock is looked at.
 * <p>2. An id is made only of a tick that the answers reserved as a whole, whatever was asked for and the clock says.
 * <p>3. A lease begins at its not_before_ms, above all that was ever reserved for its worker id.
 * <p>4. A token is sent again only while it is unknown whether it was used. A refused lease makes no more ids.
 */
public final class Snowflakes implements AutoCloseable {
  static LongSupplier clock = System::currentTimeMillis;
  private static final long CALL_MS = 1_000;
  private static final long RESERVE_MS = 3_000; // how far ahead of the ids time is reserved
  private static final long BORROW_MS = 50; // how far ids may run ahead of the clock, when a tick is used up
  private static final long BACK_MS = 5; // how far the clock may be behind what it showed before
  private final Idmint idmint;
  private final String tag, instance;
  private final Thread keeper = new Thread(this::keep, "worker id");
  // All below is changed under the lock of this, and the lease by the keeper only.
  private LeaseWorkerResponse lease; // null, and why
  private Refusal error = notYet();
  private SnowflakeLayout layout;
  private long unitMs, originMs, token; // the token is for the next call
  private long tick, sequence; // of the next id
  private long firstTick, lastTick; // of the reservation
  private long clockMs; // the highest time of the clock that was believed

  /** Leases a worker id, and keeps it until it is closed. */
  public Snowflakes(Idmint idmint, String tag, String instance) {
    this.idmint = idmint;
    this.tag = tag;
    this.instance = instance;
    keeper.setDaemon(true);
    keeper.start();
  }

  @Override
  public void close() {
    keeper.interrupt();
  }

  /** The next id. Waits where that may help, and refuses while the clock is set back. */
  public long next() throws InterruptedException {
    for (long end = System.nanoTime() + Idmint.TIMEOUT_MS * 1_000_000; ; Thread.sleep(1)) {
      synchronized (this) {
        long id = lease == null ? -1 : make();
        if (id >= 0) return id;
        var refusal = lease == null ? error : notYet();
        if (refusal.code != Code.UNAVAILABLE || System.nanoTime() - end >= 0) throw refusal;
      }
    }
  }

  private static Refusal notYet() {
    return new Refusal(Code.UNAVAILABLE, "SEGMENT_NOT_READY", "no more time is reserved for ids yet", 100);
  }

  private long make() {
    long now = clock.getAsLong();
    if (now < clockMs - BACK_MS) {
      throw new Refusal(Code.FAILED_PRECONDITION, "CLOCK_MOVED_BACKWARDS", "the clock was set back", clockMs - now);
    }
    long clockTick = tickAt(now);
    if (clockTick > lastTick) return -1; // The registry has confirmed no clock as late as this one.
    clockMs = Math.max(clockMs, now);
    if (clockTick > tick) {
      tick = clockTick;
      sequence = 0;
    }
    if (tick > Math.min(lastTick, Math.max(clockTick, firstTick) + BORROW_MS / unitMs)) return -1;
    long id = tick << layout.getExtensionBits() | lease.getExtension();
    id = id << layout.getDataCenterBits() | lease.getDataCenter();
    id = id << layout.getWorkerBits() | lease.getWorkerId();
    id = id << layout.getSequenceBits() | sequence;
    if (++sequence == 1L << layout.getSequenceBits()) {
      tick++;
      sequence = 0;
    }
    return id;
  }

  private long tickAt(long ms) {
    return Math.floorDiv(ms - originMs, unitMs);
  }

  private void reserve(long untilMs, long nextToken) {
    lastTick = Math.min(tickAt(untilMs + 1) - 1, (1L << layout.getTimeBits()) - 1);
    token = nextToken;
  }

  private void keep() {
    try {
      for (; ; Thread.sleep(CALL_MS)) {
        try {
          if (lease != null) extend();
          if (lease == null) begin();
        } catch (Refusal refusal) {
          settle(refusal);
        }
      }
    } catch (InterruptedException closed) {}
  }

  private synchronized void settle(Refusal refusal) {
    if (lease == null ? refusal.code == Code.DEADLINE_EXCEEDED : refusal.isSilent()) return; // It is tried again.
    error = lease == null ? refusal : notYet();
    lease = null;
  }

  private void begin() throws InterruptedException {
    var request = LeaseWorkerRequest.newBuilder().setTag(tag).setInstance(instance).build();
    var answer = idmint.call(CALL_MS, end -> idmint.workers.withDeadline(end).leaseWorker(request));
    synchronized (this) {
      lease = answer;
      error = notYet();
      layout = answer.getSnowflake().getLayout();
      unitMs = Durations.toMillis(layout.getTimeUnit());
      originMs = Timestamps.toMillis(layout.getTimeOrigin());
      tick = firstTick = tickAt(answer.getNotBeforeMs() + unitMs - 1);
      sequence = clockMs = 0;
      reserve(answer.getReservedUntilMs(), answer.getToken());
    }
  }

  private synchronized long nextMs() {
    return originMs + tick * unitMs;
  }

  private void extend() throws InterruptedException {
    var request = RenewWorkerLeaseRequest.newBuilder().setTag(tag).setDataCenter(lease.getDataCenter())
        .setWorkerId(lease.getWorkerId()).setExtension(lease.getExtension()).setToken(token)
        .setReserveUntilMs(Math.max(clock.getAsLong(), nextMs()) + RESERVE_MS).build();
    var answer = idmint.call(CALL_MS, end -> idmint.workers.withDeadline(end).renewWorkerLease(request));
    synchronized (this) {
      reserve(answer.getReservedUntilMs(), answer.getToken());
      if (answer.getEpoch() != lease.getEpoch() || answer.getExtension() != lease.getExtension()) lease = null;
    }
  }
}
