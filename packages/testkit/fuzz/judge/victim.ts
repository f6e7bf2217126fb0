import { credentials, Metadata, status } from "@grpc/grpc-js";
import { IdServiceClient } from "@idmint/proto/grpc-js";

const EVERY_MS = 5;
/** Longer than a machine on which much else runs keeps an answer back. */
const DEADLINE_MS = 20_000;

/** Somebody who asks for ids of a tag of their own, one after the other, and must not notice what others send. */
export class Victim {
  readonly #client: IdServiceClient;
  readonly #tag: string;
  readonly #isStopped: () => boolean;
  readonly #ids = new Set<bigint>();
  readonly faults: string[] = [];
  #isOver = false;
  #running: Promise<void> = Promise.resolve();

  /** `isStopped`: whether somebody, who may, has just asked to stop everybody. */
  constructor(address: string, tag: string, isStopped: () => boolean) {
    this.#client = new IdServiceClient(address, credentials.createInsecure(), {
      "grpc.use_local_subchannel_pool": 1,
      "grpc.enable_retries": 0,
    });
    this.#tag = tag;
    this.#isStopped = isStopped;
  }

  get answers(): number {
    return this.#ids.size;
  }

  start(): void {
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      await this.#ask();
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  }

  #ask(): Promise<void> {
    const request = { tag: this.#tag, name: "" };
    const options = { deadline: Date.now() + DEADLINE_MS };
    return new Promise((resolve) => {
      this.#client.generateId(request, new Metadata(), options, (error, answer) => {
        if (error === null) {
          if (this.#ids.has(answer.id)) this.faults.push(`the victim: ${answer.id} twice`);
          this.#ids.add(answer.id);
        } else if (error.code !== status.FAILED_PRECONDITION || !this.#isStopped()) {
          this.faults.push(`the victim: ${error.code} ${error.details}`);
        }
        resolve();
      });
    });
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#running;
    this.#client.close();
  }
}
