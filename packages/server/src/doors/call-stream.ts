import type { Answer, Message } from "../api/method.ts";

/** Requests of one stream that may wait at once; no further one is read until some are answered. */
const MAX_WAITING = 1_024;

/** The stream, as a door has it. */
export interface StreamPeer {
  readonly isPaused: boolean;
  /** Answers whether it takes more at once; otherwise `drained` tells when it does. */
  write(message: Message): boolean;
  pause(): void;
  resume(): void;
  /** Ends well. */
  end(): void;
}

export interface CallStreamPorts {
  readonly answer: Answer;
  /** Called once for each message. */
  readonly onRequest: () => void;
  /** Ends the call with the status of what was thrown. */
  readonly refuse: (thrown: unknown) => void;
  readonly onEnd: () => void;
}

/**
 * One stream of requests and answers. It reads while fewer than `MAX_WAITING` requests wait and the caller takes its
 * answers; a caller that does neither costs this much memory and no more.
 *
 * It is open until the caller ends it, it is told to `stop`, a message is no request, or the connection breaks; then what
 * waits is answered, where there still is somebody to answer, and it is over.
 */
export class CallStream {
  readonly #peer: StreamPeer;
  readonly #ports: CallStreamPorts;
  #waiting = 0;
  #isFull = false;
  #isEnding: false | "caller" | "stopped" = false;
  #stopReason: unknown;
  #isOver = false;

  constructor(peer: StreamPeer, ports: CallStreamPorts) {
    this.#peer = peer;
    this.#ports = ports;
  }

  /** Requests that wait for their answer. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Reads no further, answers what waits, and ends with the status of `reason`. */
  stop(reason: unknown): void {
    this.#stopReason = reason;
    this.#peer.pause();
    this.#end("stopped");
  }

  /** The caller ended its side. */
  end(): void {
    this.#end("caller");
  }

  /** The peer takes more. */
  drained(): void {
    this.#isFull = false;
    this.#readOn();
  }

  /** The caller is gone. */
  gone(): void {
    this.#finish();
  }

  /** The next message is between `from` and `to`. */
  take(bytes: Uint8Array, from: number, to: number): void {
    if (this.#isEnding !== false || this.#isOver) return;
    this.#ports.onRequest();
    try {
      const answer = this.#ports.answer(bytes, from, to);
      if (answer instanceof Promise) void this.#later(answer);
      else this.#send(answer);
    } catch (thrown) {
      this.stop(thrown);
    }
  }

  async #later(answer: Promise<Message>): Promise<void> {
    this.#waiting++;
    if (this.#waiting >= MAX_WAITING) this.#peer.pause();
    try {
      this.#send(await answer);
    } catch (thrown) {
      this.stop(thrown);
    }
    this.#waiting--;
    this.#readOn();
    if (this.#isEnding !== false) this.#end(this.#isEnding);
  }

  #send(message: Message): void {
    if (this.#isOver) return;
    if (this.#peer.write(message)) return;
    this.#isFull = true;
    this.#peer.pause();
  }

  #readOn(): void {
    const mayRead = !this.#isFull && this.#waiting < MAX_WAITING && this.#isEnding === false;
    if (mayRead && !this.#isOver && this.#peer.isPaused) this.#peer.resume();
  }

  #end(by: "caller" | "stopped"): void {
    if (this.#isEnding !== "stopped") this.#isEnding = by;
    if (this.#waiting > 0 || this.#isOver) return;
    if (this.#isEnding === "stopped") this.#ports.refuse(this.#stopReason);
    else this.#peer.end();
    this.#finish();
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#ports.onEnd();
  }
}
