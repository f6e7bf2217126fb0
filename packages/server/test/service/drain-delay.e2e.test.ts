// A server that takes no callers any more answers them until those in front of it have noticed, and sends them away meanwhile.
import { type ClientHttp2Session, connect } from "node:http2";
import {
  GenerateIdRequest,
  GetNodeStatusRequest,
  IdServiceService,
  NodeServiceService,
} from "@idmint/proto";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  call,
  createTag,
  generateId,
  Refusal,
  startTest,
  type TestServer,
  until,
} from "../support.ts";

const N = NodeServiceService;
const DELAY_MS = 1_500;
const DELAY = { instance: "one", "drain-delay": `${DELAY_MS}ms` };
const UNAVAILABLE = "14";

/** A connection, and what came on it, in its order. */
class Line {
  readonly heard: string[] = [];
  /** When it was told to go, by the clock of the process. */
  toldAt = 0;
  readonly #session: ClientHttp2Session;

  constructor({ server }: TestServer) {
    this.#session = connect(`http://${server.grpcAddress}`);
    this.#session.on("error", () => undefined);
    this.#session.on("goaway", (code: number, last: number) => {
      this.toldAt ||= performance.now();
      this.heard.push(`GOAWAY ${code} ${last === 2 ** 31 - 1 ? "at all" : "last"}`);
    });
    onTestFinished(() => this.#session.destroy());
  }

  /** The status of a call; undefined: its connection was closed before it was answered. */
  ask({ path }: { readonly path: string }, message: Uint8Array): Promise<string | undefined> {
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    const stream = this.#session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
    });
    let status: string | undefined;
    const hear = (headers: Record<string, unknown>): void => {
      const { "grpc-status": its } = headers as { readonly "grpc-status"?: string };
      if (its === undefined) return;
      status = its;
      this.heard.push(`status ${its}`);
    };
    stream
      .on("response", hear)
      .on("trailers", hear)
      .on("error", () => undefined)
      .resume();
    stream.once("close", () => resolve(status));
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(message.length, 1);
    stream.end(Buffer.concat([prefix, message]));
    return promise;
  }

  id(): Promise<string | undefined> {
    return this.ask(IdServiceService.generateId, ID);
  }
}

const ID = GenerateIdRequest.encode({ tag: "orders", name: "" }).finish();
const STATUS = GetNodeStatusRequest.encode({}).finish();

async function readiness({ server }: TestServer) {
  const { status, headers } = await fetch(`http://${server.httpAddress}/readyz`);
  return { status, connection: headers.get("connection") };
}

function drain({ nodes }: TestServer): Promise<unknown> {
  return call(nodes, N.drainNode, { node: "one", validateOnly: false }, 10_000);
}

function undrain({ nodes }: TestServer): Promise<unknown> {
  return call(nodes, N.undrainNode, { node: "one", validateOnly: false }, 10_000);
}

/** Lines on which somebody calls, so that they are connections. */
async function linesTo(it: TestServer, count: number): Promise<readonly Line[]> {
  const lines = Array.from({ length: count }, () => new Line(it));
  expect(await Promise.all(lines.map((line) => line.id()))).toEqual(lines.map(() => "0"));
  return lines;
}

function toldTimes(line: Line): number {
  return line.heard.filter((each) => each === "GOAWAY 0 at all").length;
}

describe.each(["fast", "grpc-js"])("%s", (door) => {
  const start = async (): Promise<TestServer> => {
    const it = await startTest({ flags: { ...DELAY, "grpc-door": door } });
    await createTag(it, "orders");
    return it;
  };

  test("a drained server answers for the delay, tells each connection once, and then refuses behind a GOAWAY", async () => {
    const it = await start();
    const lines = await linesTo(it, 8);
    expect(await readiness(it)).toEqual({ status: 200, connection: "keep-alive" });
    const drainedAt = performance.now();
    await drain(it);
    expect(await readiness(it)).toEqual({ status: 503, connection: "close" });
    expect(await call(it.nodes, N.getNodeStatus, {})).toMatchObject({
      state: 2,
      stateReason: expect.stringContaining("idmint node undrain one") as unknown,
    });
    // Whoever comes meanwhile is answered, and told to go in time.
    const [newcomer] = await linesTo(it, 1);
    await until(() => lines.every((line) => line.toldAt > 0) && newcomer?.toldAt !== 0);
    await until(() => isRefused(it));
    const all = [...lines, newcomer!];
    expect(all.map(toldTimes)).toEqual(all.map(() => 1));
    const toldAt = lines.map((line) => line.toldAt - drainedAt).toSorted((a, b) => a - b);
    // They do not all come back at once.
    expect(toldAt.at(-1)! - toldAt[0]!).toBeGreaterThan(DELAY_MS / 4);
    const late = new Line(it);
    expect(await late.id()).toBe(UNAVAILABLE);
    expect(late.heard).toEqual(["GOAWAY 0 at all", `status ${UNAVAILABLE}`]);
    // Operators are answered, and stay.
    const operator = new Line(it);
    expect(await operator.ask(N.getNodeStatus, STATUS)).toBe("0");
    expect(operator.heard).toEqual(["status 0"]);
    await undrain(it);
    expect(await readiness(it)).toEqual({ status: 200, connection: "keep-alive" });
    await linesTo(it, 1);
  });

  test("a server that is undrained before the delay is over has refused nothing", async () => {
    const it = await start();
    await drain(it);
    await undrain(it);
    const [line] = await linesTo(it, 1);
    await new Promise((resolve) => setTimeout(resolve, DELAY_MS));
    expect(await line?.id()).toBe("0");
    expect(line?.heard).toEqual(["status 0", "status 0"]);
    const phases = it.events.flatMap((event) =>
      event.type === "operator-drain" ? [event.phase] : [],
    );
    expect(phases).toEqual(["unready", "serving"]);
  });

  test("a server that stops answers for the delay, unless it is told to hurry", async () => {
    const it = await start();
    const lines = await linesTo(it, 4);
    expect(it.server.hurry()).toBe(false);
    const stoppedAt = performance.now();
    const closed = it.server.close();
    expect(await readiness(it)).toEqual({ status: 503, connection: "close" });
    await linesTo(it, 1);
    await until(() => lines.every((line) => line.toldAt > 0));
    await closed;
    expect(performance.now() - stoppedAt).toBeGreaterThanOrEqual(DELAY_MS);
    expect(lines.map(toldTimes)).toEqual(lines.map(() => 1));
    const other = await startTest({ flags: { "drain-delay": "10min", "grpc-door": door } });
    const hurried = other.server.close();
    await createTag(other, "orders");
    expect(other.server.hurry()).toBe(true);
    expect(other.server.hurry()).toBe(false);
    await hurried;
  });
});

/** Whether calls are refused. grpc-js refuses one by itself that it had not sent when its connection was told to go. */
async function isRefused(it: TestServer): Promise<boolean> {
  try {
    await generateId(it, "orders");
    return false;
  } catch (thrown) {
    return thrown instanceof Refusal && thrown.reason === "DRAINING";
  }
}
