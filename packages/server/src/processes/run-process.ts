import type { Socket } from "node:net";
import { omitStacks } from "@idmint/core/server";
import { startServer } from "../main/app.ts";
import type { RunningServer } from "../main/running.ts";
import type { FiguresRequest } from "../service/figures/fleet.ts";
import type { NodeHealth } from "../service/node.ts";
import { nodeTimers } from "../timers.ts";
import { Inlet, Tally } from "./inlet.ts";
import { type DoorName, faultOf, type Start, type ToParent, type ToProcess } from "./messages.ts";
import { ParentProbes } from "./parent-probes.ts";
import { ParentMemory } from "./parent-memory.ts";
import { Questions } from "./questions.ts";

/** What the other processes of this server are asked. */
const siblings = new Questions<readonly Uint8Array[]>(nodeTimers);

/** How often a process checks its health, and after how many checks it reports it although nothing changed. */
const LOOK_MS = 200;
const LOOKS = 5;
/** On top of what the others may take, for the parent in between. */
const PARENT_MS = 100;

/**
 * A process, from its first message to its end. It stops when its parent says so, when its parent ends, and on
 * SIGTERM. SIGTERM ends this process only: it drains, and the parent starts another. Told again, it answers no longer, and
 * neither does it without a parent: nobody else can come then, and the address is to be free for another server.
 */
export async function runProcess(): Promise<void> {
  const toStop = Promise.withResolvers<void>();
  const toStart = Promise.withResolvers<Start | undefined>();
  let isStopping = false;
  const hurry = Promise.withResolvers<void>();
  const stop = (): void => {
    if (isStopping) hurry.resolve();
    isStopping = true;
    toStop.resolve();
    toStart.resolve(undefined);
  };
  const probes = new ParentProbes(tell, nodeTimers);
  const memory = new ParentMemory(tell, nodeTimers);
  let inlets: Inlets | undefined;
  let server: RunningServer | undefined;
  process.on("SIGTERM", stop);
  process.on("disconnect", () => {
    stop();
    hurry.resolve();
  });
  process.on("message", (message: unknown, socket: unknown) => {
    const said = message as ToProcess;
    if (said.type === "start") {
      inlets = inletsOf(said);
      memory.known = said.known;
      toStart.resolve(said);
    } else if (said.type === "connection") {
      inlets?.[said.door].receive(said.number, socket as Socket | undefined);
    } else if (said.type === "give-way") {
      inlets?.[said.door].giveWay(said.number);
    } else if (said.type === "probed") {
      probes.hear(said.number, said.answer);
    } else if (said.type === "settled") {
      memory.hear(said.number, said.storeId);
    } else if (said.type === "collect") {
      void tellMetrics(server, said.number);
    } else if (said.type === "tell-figures") {
      void tellFigures(server, said);
    } else if (said.type === "told-figures") {
      siblings.answered(said.number, said.told);
    } else {
      stop();
    }
  });
  // The parent may have died before this process listened.
  if (!process.connected) stop();
  const start = await toStart.promise;
  const isGood =
    start === undefined ||
    inlets === undefined ||
    (await serve(
      start,
      { inlets, probes, memory },
      { toStop: toStop.promise, hurry: hurry.promise },
      (serving) => {
        server = serving;
      },
    ));
  // The channel to the parent would keep the process alive, and so may a store that hangs.
  process.exit(isGood ? 0 : 1);
}

type Inlets = Readonly<Record<DoorName, Inlet>>;

function inletsOf({ grpcPort, adminPort, httpPort }: Start): Inlets {
  const tally = new Tally((taken, closed) => void tell({ type: "connections", taken, closed }));
  return {
    admin: new Inlet(adminPort, tally),
    grpc: new Inlet(grpcPort, tally),
    http: new Inlet(httpPort, tally),
  };
}

/** False when it could not start. */
async function serve(
  { config, process: number, makesDemoTag }: Start,
  {
    inlets,
    probes,
    memory,
  }: { readonly inlets: Inlets; readonly probes: ParentProbes; readonly memory: ParentMemory },
  { toStop, hurry }: { readonly toStop: Promise<void>; readonly hurry: Promise<void> },
  onServing: (server: RunningServer) => void,
): Promise<boolean> {
  let server: RunningServer;
  const ending = new AbortController();
  void toStop.then(() => ending.abort());
  try {
    server = await startServer(config, {
      makesDemoTag,
      signal: ending.signal,
      process: { number, connections: inlets, probes, memory, siblings: askSiblings },
    });
  } catch (thrown) {
    await tell({ type: "failed", fault: faultOf(thrown) });
    return false;
  }
  onServing(server);
  omitStacks();
  const { node } = server;
  const look = lookAfter(() => node.health);
  look();
  const looking = setInterval(look, LOOK_MS);
  void tell({ type: "serving" });
  await toStop;
  const closed = server.close();
  void hurry.then(() => server.hurry());
  // At once, so that no further connection comes.
  look();
  await closed;
  clearInterval(looking);
  return true;
}

async function tellMetrics(server: RunningServer | undefined, number: number): Promise<void> {
  const collected = server?.metrics?.collect();
  const metrics = await collected?.catch(() => undefined);
  await tell({ type: "metrics", number, metrics });
}

async function tellFigures(
  server: RunningServer | undefined,
  { number, request }: Extract<ToProcess, { readonly type: "tell-figures" }>,
): Promise<void> {
  await tell({ type: "figures", number, told: server?.figures(request) });
}

/** The figures of the other processes that tell them in time, encoded. */
async function askSiblings(
  request: FiguresRequest,
  timeoutMs: number,
): Promise<readonly Uint8Array[]> {
  const ask = (number: number): void =>
    void tell({ type: "ask-figures", number, request, timeoutMs });
  return (await siblings.ask(ask, timeoutMs + PARENT_MS)) ?? [];
}

/** Reports this process's health to the parent when it changes, and from time to time when it does not. */
function lookAfter(health: () => NodeHealth): () => void {
  let told = "";
  let looks = 0;
  return () => {
    const { ready, state, reason = "" } = health();
    const now = `${ready} ${state}`;
    looks++;
    if (now === told && looks < LOOKS) return;
    told = now;
    looks = 0;
    void tell({ type: "health", ready, state, reason });
  };
}

/** Fulfils when the message was sent, or when there is no parent any more. */
function tell(message: ToParent): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected) process.send?.(message, undefined, {}, () => resolve());
    else resolve();
  });
}
