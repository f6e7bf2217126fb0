import type { ServerDuplexStream } from "@grpc/grpc-js";
import type { Answer } from "../api/method.ts";

/** Requests of one stream that may wait at once; no further one is read until some are answered. */
const MAX_WAITING = 1_024;

type Call = ServerDuplexStream<Buffer, Buffer>;

export interface CallStreamPorts {
  readonly answer: Answer;
  /** Called once for each message. */
  readonly onRequest: () => void;
  /** Ends the call with the status of what was thrown. */
  readonly refuse: (call: Call, thrown: unknown) => void;
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
  readonly #call: Call;
  readonly #ports: CallStreamPorts;
  #waiting = 0;
  #isFull = false;
  #isEnding: false | "caller" | "stopped" = false;
  #stopReason: unknown;
  #isOver = false;

  constructor(call: Call, ports: CallStreamPorts) {
    this.#call = call;
    this.#ports = ports;
    call.on("data", (bytes: Buffer) => this.#take(bytes));
    call.on("end", () => this.#end("caller"));
    call.on("drain", () => {
      this.#isFull = false;
      this.#readOn();
    });
    call.on("cancelled", () => this.#finish());
    call.on("error", () => this.#finish());
  }

  /** Requests that wait for their answer. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Reads no further, answers what waits, and ends with the status of `reason`. */
  stop(reason: unknown): void {
    this.#stopReason = reason;
    this.#call.pause();
    this.#end("stopped");
  }

  #take(bytes: Buffer): void {
    if (this.#isEnding !== false || this.#isOver) return;
    this.#ports.onRequest();
    let answer: Uint8Array | Promise<Uint8Array>;
    try {
      answer = this.#ports.answer(bytes);
    } catch (thrown) {
      this.stop(thrown);
      return;
    }
    if (answer instanceof Promise) void this.#later(answer);
    else this.#send(answer);
  }

  async #later(answer: Promise<Uint8Array>): Promise<void> {
    this.#waiting++;
    if (this.#waiting >= MAX_WAITING) this.#call.pause();
    try {
      this.#send(await answer);
    } catch (thrown) {
      this.stop(thrown);
    }
    this.#waiting--;
    this.#readOn();
    if (this.#isEnding !== false) this.#end(this.#isEnding);
  }

  #send(bytes: Uint8Array): void {
    if (this.#isOver) return;
    if (this.#call.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))) return;
    this.#isFull = true;
    this.#call.pause();
  }

  #readOn(): void {
    const mayRead = !this.#isFull && this.#waiting < MAX_WAITING && this.#isEnding === false;
    if (mayRead && !this.#isOver && this.#call.isPaused()) this.#call.resume();
  }

  #end(by: "caller" | "stopped"): void {
    if (this.#isEnding !== "stopped") this.#isEnding = by;
    if (this.#waiting > 0 || this.#isOver) return;
    if (this.#isEnding === "stopped") this.#ports.refuse(this.#call, this.#stopReason);
    else this.#call.end();
    this.#finish();
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#ports.onEnd();
  }
}
