package com.example.orders.ids;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.util.Durations;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import io.grpc.Status;
import io.grpc.protobuf.StatusProto;

/** Why there is no id. */
public final class Refusal extends RuntimeException {
  public final Status.Code code;
  /** idmint's reason, such as TAG_NOT_FOUND; empty when a call reached no server. */
  public final String reason;
  /** When to try again. */
  public final long retryAfterMs;

  Refusal(Status.Code code, String reason, String message, long retryAfterMs) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }

  /** Whether it says nothing about a lease: its token is sent again. */
  boolean isSilent() {
    return switch (code) {
      case UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED, RESOURCE_EXHAUSTED, INTERNAL -> true;
      default -> false;
    };
  }

  static Refusal of(Exception failure) {
    return of(StatusProto.fromThrowable(failure));
  }

  static Refusal of(com.google.rpc.Status status) {
    String reason = "";
    long retryAfterMs = 100;
    try {
      for (Any detail : status.getDetailsList()) {
        if (detail.is(ErrorInfo.class)) {
          var info = detail.unpack(ErrorInfo.class);
          if (info.getDomain().equals("idmint")) reason = info.getReason();
        } else if (detail.is(RetryInfo.class)) {
          retryAfterMs = Math.max(1, Durations.toMillis(detail.unpack(RetryInfo.class).getRetryDelay()));
        }
      }
    } catch (InvalidProtocolBufferException e) {
      // The code says enough.
    }
    return new Refusal(Status.fromCodeValue(status.getCode()).getCode(), reason, status.getMessage(), retryAfterMs);
  }
}
