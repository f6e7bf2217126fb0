import { Head } from "./head.ts";

/** A call on a stream, from its head to its end. None of these throws. */
export interface Call {
  /**
   * The next bytes of the request; they are valid until this returns. `isLast`: it is complete. Answers whether they completed
   * a message: those that complete nothing, again and again, end the connection.
   */
  received(bytes: Buffer, from: number, to: number, isLast: boolean): boolean;
  /** The stream is over, answered or not; nothing may be sent any more. The stream is to be released, now or later. */
  aborted(): void;
  /** The peer takes more. */
  drained(): void;
  /** The connection is too old: what was asked is answered now, or refused. */
  leave(): void;
}

/** How an answer ends: as one of gRPC that went well, without any field, or with the fields of a block. */
export const END = { OK: "ok", NOTHING: "nothing" } as const;
export type End = (typeof END)[keyof typeof END] | Uint8Array;

/** Bytes of one stream that wait for their windows. */
interface Waiting {
  readonly bytes: Uint8Array;
  from: number;
}

/**
 * One stream of a connection (RFC 9113, 5.1). Streams are used again when they are closed, so nobody keeps one behind its end.
 *
 * It is open until both sides ended: `isRemoteDone` (END_STREAM came) and `isLocalDone` (ours was sent).
 */
export class Stream {
  id = 0;
  readonly head: Head = new Head();
  isRemoteDone = false;
  isLocalDone = false;
  /** What is counted for it until its request is complete. */
  headBytes = 0;
  /** How much of the body came. */
  received = 0;
  /** Whether its user wants no further bytes for now: the window is not given back. */
  isPaused = false;
  /** What the peer lets us send, and what we let it send. */
  sendWindow = 0;
  receiveWindow = 0;
  /** What is kept of received bytes until it is worth an update of the window. */
  unacknowledged = 0;
  /** Frames in a row that brought next to nothing. */
  crumbs = 0;
  /** Empty when the stream is closed. */
  readonly waiting: Waiting[] = [];
  waitingBytes = 0;
  /** What follows what waits. */
  end: End | undefined;
  /** Whether the head of an answer was sent. */
  hasHead = false;
  /** Who uses it. */
  user: Call | undefined;

  begin(id: number, sendWindow: number, receiveWindow: number): void {
    this.id = id;
    this.isRemoteDone = false;
    this.isLocalDone = false;
    this.headBytes = 0;
    this.received = 0;
    this.isPaused = false;
    this.sendWindow = sendWindow;
    this.receiveWindow = receiveWindow;
    this.unacknowledged = 0;
    this.crumbs = 0;
    this.end = undefined;
    this.hasHead = false;
    this.user = undefined;
  }
}
