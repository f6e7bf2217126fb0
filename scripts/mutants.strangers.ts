import type { Mutant } from "./mutant.ts";

const doors = "packages/server/src/doors";
const fast = "packages/server/src/fast";
const http2 = `${fast}/http2`;
const processes = "packages/server/src/processes";
const front = ["packages/server/test/processes/front.test.ts"];
const room = ["packages/server/test/doors/room.e2e.test.ts"];
const tls = "packages/server/src/tls";
const tests = "packages/server/test/fast";
const memory = [`${tests}/short-memory.test.ts`];
const begun = [`${tests}/begun.test.ts`];
const message = [`${tests}/calls/one-message.test.ts`];
const handshakes = ["packages/server/test/tls/handshakes-state.model.test.ts"];
const places = ["packages/server/test/doors/places-state.model.test.ts"];

/** Faults of what strangers may take of the doors of gRPC: memory and places. */
export const strangersMutants: readonly Mutant[] = [
  {
    name: "doors: memory: a message whose request does not end is not counted",
    file: `${fast}/calls/one-message.ts`,
    find: `    this.#its.held.add(message.length);`,
    replace: ``,
    tests: message,
  },
  {
    name: "doors: memory: a message that was taken stays counted",
    file: `${fast}/calls/one-message.ts`,
    find: `    this.#its.held.add(-(this.#message?.length ?? 0));`,
    replace: ``,
    tests: message,
  },
  {
    name: "doors: memory: requests wait for their end, whatever they keep",
    file: `${fast}/calls/one-message.ts`,
    find: `return count > 0 && this.#its.held.isTooMuch`,
    replace: `return count > 1 && this.#its.held.isTooMuch`,
    tests: message,
  },
  {
    name: "doors: memory: answers that nobody reads count as their bytes",
    file: `${http2}/out.ts`,
    find: `      this.#held.lend(SLAB_BYTES);`,
    replace: `      this.#held.lend(0);`,
    tests: memory,
  },
  {
    name: "doors: memory: answers that were read stay counted",
    file: `${http2}/out.ts`,
    find: `      this.#held.lend(length - SLAB_BYTES);`,
    replace: `      this.#held.lend(-length);`,
    tests: memory,
  },
  {
    name: "doors: memory: who takes no answers is kept, if they are short",
    file: `${fast}/fast-connection.ts`,
    find: `this.#stalls = this.#out.queued > 0 ?`,
    replace: `this.#stalls = this.#isFull ?`,
    tests: memory,
  },
  {
    name: "doors: memory: all may keep as much as they like together",
    file: `${http2}/limits.ts`,
    find: `this.#all.kept > KEPT_OF_ALL) this.#all.makeRoom();`,
    replace: `this.#all.kept > 1e9) this.#all.makeRoom();`,
    tests: memory,
  },
  {
    name: "fast: begun: a part of a frame is not counted",
    file: `${http2}/frame-reader.ts`,
    find: `this.#held.begin(room - this.#part.length);`,
    replace: ``,
    tests: begun,
  },
  {
    name: "fast: begun: a header block that does not end is not counted",
    file: `${http2}/header-block.ts`,
    find: `this.#held.begin(part.length + PART_BYTES);`,
    replace: ``,
    tests: begun,
  },
  {
    name: "fast: begun: a header block stays counted behind its connection",
    file: `${http2}/requests.ts`,
    find: `this.#block?.forget();`,
    replace: ``,
    tests: begun,
  },
  {
    name: "fast: begun: HPACK's table is not counted",
    file: `${http2}/hpack/decoder.ts`,
    find: `this.#tell(field.size + FIELD_BYTES);`,
    replace: ``,
    tests: begun,
  },
  {
    name: "fast: begun: room is never made",
    file: `${http2}/limits.ts`,
    find: `this.#all.begun > BEGUN_OF_ALL) this.#all.makeRoom();`,
    replace: `this.#all.begun > 1e9) this.#all.makeRoom();`,
    tests: begun,
  },
  {
    name: "fast: begun: who keeps the most goes, whatever others of its address keep",
    file: `${doors}/greed.ts`,
    find: `if (caller.sum > greediest.sum) greediest = caller;`,
    replace: `const most = ({ own }: { own: Its[] }) => Math.max(0, ...own.map(amount));
      if (most(caller) > most(greediest)) greediest = caller;`,
    tests: begun,
  },
  {
    name: "doors: places: nobody gives way when all are taken",
    file: `${doors}/places-state.ts`,
    find: `if (!isGreedy || this.of(address) + 2 > this.#greatest) return`,
    replace: `if (this.#taken >= this.#most) return`,
    tests: places,
  },
  {
    name: "doors: places: who holds half of the places or less gives way",
    file: `${doors}/places-state.ts`,
    find: `const isGreedy = this.#greatest * 2 > this.#most;`,
    replace: `const isGreedy = true;`,
    tests: places,
  },
  {
    name: "doors: places: a place that is free again stays counted",
    file: `${doors}/places-state.ts`,
    find: `this.#count(place.address, held, -1);`,
    replace: `held.count -= 1;`,
    tests: places,
  },
  {
    name: "doors: places: who gave way stays connected",
    file: `${doors}/listener.ts`,
    find: `giveWay(loser);`,
    replace: `loser.resume();`,
    tests: ["packages/server/test/doors/places.e2e.test.ts"],
  },
  {
    name: "doors: places: who gave way is not told",
    file: `${fast}/door.ts`,
    find: `else connection.giveWay();`,
    replace: `else socket.destroy();`,
    tests: ["packages/server/test/doors/places.e2e.test.ts"],
  },
  {
    name: "doors: handshakes: as many run as come",
    file: `${tls}/handshakes-state.ts`,
    find: `this.#running = new Places(limits.running);`,
    replace: `this.#running = new Places(1e6);`,
    tests: handshakes,
  },
  {
    name: "doors: handshakes: they begin as they come",
    file: `${tls}/handshakes-state.ts`,
    find: `      this.#may -= 1;`,
    replace: ``,
    tests: handshakes,
  },
  {
    name: "doors: handshakes: a quiet hour lets thousands begin at once",
    file: `${tls}/handshakes-state.ts`,
    find: `Math.min(burst, this.#may +`,
    replace: `Math.min(burst * 1e6, this.#may +`,
    tests: handshakes,
  },
  {
    name: "doors: handshakes: who comes first begins first, however many of them there are",
    file: `${tls}/handshakes-state.ts`,
    find: `if (own.size > 0 && this.#turns.delete(address))`,
    replace: `if (own.size < 0 && this.#turns.delete(address))`,
    tests: handshakes,
  },
  {
    name: "doors: handshakes: one that is over keeps its place",
    file: `${tls}/handshakes.ts`,
    find: `if (handshake !== undefined) this.#end(handshake);`,
    replace: ``,
    tests: [`${tests}/tls.e2e.test.ts`],
  },
  {
    name: "doors: handshakes: who gives way to another stays",
    file: `${tls}/handshakes.ts`,
    find: `      if (next.loser !== undefined) this.#giveWay(next.loser);`,
    replace: ``,
    tests: [`${tests}/tls.e2e.test.ts`],
  },
  {
    name: "doors: processes: who gives way keeps its connection",
    file: `${processes}/front.ts`,
    find: `    loser?.giveWay();`,
    replace: ``,
    tests: front,
  },
  {
    name: "doors: processes: a connection that ended keeps its place",
    file: `${processes}/front.ts`,
    find: `() => this.#places.free(place));`,
    replace: `() => undefined);`,
    tests: front,
  },
  {
    name: "doors: room: a small container takes as many connections as a large one",
    file: "packages/server/src/main/app.ts",
    find: `return own === undefined ? withRoom(asked, bytes, emit) : asked;`,
    replace: `return own === undefined && bytes < 0 ? withRoom(asked, bytes, emit) : asked;`,
    tests: room,
  },
  {
    name: "doors: room: connections of TLS take no more than others",
    file: "packages/server/src/main/doors/room.ts",
    find: `const TLS_BYTES = 64 * 1_024;`,
    replace: `const TLS_BYTES = 12 * 1_024;`,
    tests: room,
  },
  {
    name: "doors: memory: what a flood took is kept for good",
    file: "packages/server/src/v8-flags.ts",
    find: `    void new ArrayBuffer(PRESSURE_BYTES);`,
    replace: ``,
    tests: ["packages/server/test/v8-flags.test.ts"],
  },
  {
    name: "doors: memory: it is given back while there is much to do",
    file: "packages/server/src/v8-flags.ts",
    find: `quietForMs >= QUIET_MS && sinceMs`,
    replace: `sinceMs`,
    tests: ["packages/server/test/v8-flags.test.ts"],
  },
  {
    name: "doors: handshakes: those of HTTP run as they come",
    file: "packages/server/src/http/speaker.ts",
    find: `gate.take(socket, () => server.emit("connection", socket)),`,
    replace: `void server.emit("connection", socket),`,
    tests: ["packages/server/test/http/tls.e2e.test.ts"],
  },
];
