import type { ClientDuplexStream, Metadata } from "@grpc/grpc-js";
import { createIdClient, IdmintError } from "@idmint/client";
import type { Segment } from "@idmint/core";
import type { StreamIdsRequest, StreamIdsResponse, Tag } from "@idmint/proto";
import { IdServiceClient } from "@idmint/proto/grpc-js";
import { callMetadata, channelOf } from "../../calls/connection.ts";
import { detailsIn, failureOfCall } from "../../calls/status-details.ts";
import type { ConnectionSettings } from "../../flags/options.ts";
import { hasPeriods } from "../../text/kind-text.ts";
import { answersText } from "../id/id-decode.ts";
import type { BenchAnswer } from "./tally.ts";

export const MODES = ["call", "batch", "stream", "sdk"] as const;

/** How ids are asked for. */
export type Mode = (typeof MODES)[number];

/** Told once for each call: what it got, or why it was refused. */
type Done = (got: BenchAnswer | undefined, refusal: string) => void;

/** Makes calls. Several may be in flight. */
export interface Caller {
  readonly call: (done: Done) => void;
  readonly close: () => Promise<void>;
}

export interface Wanted {
  readonly mode: Mode;
  readonly tag: Tag;
  /** Ids of one call; only of mode batch more than one. */
  readonly count: number;
  readonly connections: number;
}

/** The callers of a run. */
export function callersOf(wanted: Wanted, settings: ConnectionSettings): readonly Caller[] {
  const make = wanted.mode === "sdk" ? sdkCaller : MAKERS[wanted.mode];
  return Array.from({ length: wanted.connections }, () => make(wanted, settings));
}

/** An id as what a call got. */
function one(id: bigint, text: string, period = ""): BenchAnswer {
  // Ids that are text have the number 0, which is no id.
  if (id === 0n) return { segments: [], texts: [text], period: "" };
  return { segments: [single(id)], texts: [], period };
}

function single(base: bigint): Segment {
  return { base, increment: 1, count: 1 };
}

interface Line {
  readonly ids: IdServiceClient;
  readonly metadata: Metadata;
  readonly reasonOf: (error: Parameters<typeof failureOfCall>[0]) => string;
}

function lineTo(settings: ConnectionSettings): Line {
  const [channel, options] = channelOf(settings);
  // Without this, all clients of one address would share one connection.
  const own = { ...options, "grpc.use_local_subchannel_pool": 1 };
  return {
    ids: new IdServiceClient(settings.address, channel, own),
    metadata: callMetadata(settings),
    reasonOf: (error) => failureOfCall(error, { ...settings, isInterrupted: false }).failure.reason,
  };
}

type Maker = (wanted: Wanted, settings: ConnectionSettings) => Caller;

const MAKERS: Readonly<Record<Exclude<Mode, "sdk">, Maker>> = {
  call: ({ tag }, settings) => {
    const { ids, metadata, reasonOf } = lineTo(settings);
    const request = { tag: tag.name, name: "" };
    return {
      call: (done) => {
        const deadline = Date.now() + settings.timeoutMs;
        ids.generateId(request, metadata, { deadline }, (error, answer) => {
          if (error !== null) done(undefined, reasonOf(error));
          else done(one(answer.id, answer.text, answer.period), "");
        });
      },
      close: async () => ids.close(),
    };
  },
  batch: ({ tag, count }, settings) => {
    const { ids, metadata, reasonOf } = lineTo(settings);
    const request = { tag: tag.name, count, asList: answersText(tag) };
    return {
      call: (done) => {
        const deadline = Date.now() + settings.timeoutMs;
        ids.generateIds(request, metadata, { deadline }, (error, answer) => {
          if (error !== null) done(undefined, reasonOf(error));
          else {
            const { segments, texts, period, ids: list } = answer;
            done({ segments: [...segments, ...list.map(single)], texts, period }, "");
          }
        });
      },
      close: async () => ids.close(),
    };
  },
  stream: ({ tag }, settings) => streamCaller(tag.name, settings),
};

/**
 * One stream, opened anew by the first call after it broke. Calls that wait on a stream which breaks are refused: whether
 * the server issued their ids is unknown.
 */
function streamCaller(tag: string, settings: ConnectionSettings): Caller {
  const { ids, metadata, reasonOf } = lineTo(settings);
  let waiting = new Map<number, Done>();
  let stream: ClientDuplexStream<StreamIdsRequest, StreamIdsResponse> | undefined;
  let last = 0;
  const open = (): ClientDuplexStream<StreamIdsRequest, StreamIdsResponse> => {
    const opened = ids.streamIds(metadata);
    const its = new Map<number, Done>();
    waiting = its;
    const over = (reason: string): void => {
      if (stream === opened) stream = undefined;
      const all = [...its.values()];
      its.clear();
      for (const done of all) done(undefined, reason);
    };
    opened.on("data", ({ call, result }: StreamIdsResponse) => {
      const done = its.get(call);
      its.delete(call);
      if (result?.$case === "one") {
        done?.(one(result.value.id, result.value.text, result.value.period), "");
      } else {
        const details = result?.$case === "error" ? result.value.details : [];
        done?.(undefined, detailsIn(() => details).reason ?? "INTERNAL");
      }
    });
    opened.on("error", (error) => over(reasonOf(error as never)));
    opened.on("end", () => over("SERVER_UNAVAILABLE"));
    return opened;
  };
  return {
    call: (done) => {
      stream ??= open();
      last = (last + 1) >>> 0;
      waiting.set(last, done);
      stream.write({ call: last, tag, count: 0, name: "" });
    },
    close: async () => {
      stream?.cancel();
      ids.close();
    },
  };
}

/** One SDK with what it holds in memory. */
function sdkCaller({ tag }: Wanted, settings: ConnectionSettings): Caller {
  const { address, tls, token, timeoutMs } = settings;
  const { caPem, certPem, keyPem } = tls ?? {};
  const client = createIdClient({
    address,
    deadlineMs: timeoutMs,
    ...(token === undefined ? {} : { token }),
    ...(tls === undefined
      ? {}
      : {
          tls: {
            ...(caPem === undefined ? {} : { ca: caPem }),
            ...(certPem === undefined ? {} : { cert: certPem }),
            ...(keyPem === undefined ? {} : { key: keyPem }),
          },
        }),
  });
  const ids = client.tag(tag.name);
  const ask = async (): Promise<BenchAnswer> => {
    if (answersText(tag)) return one(0n, await ids.nextString());
    if (!hasPeriods(tag)) return one(await ids.next(), "");
    const { id, period } = await ids.nextPeriodId();
    return one(id, "", period);
  };
  const call = async (done: Done): Promise<void> => {
    let got: BenchAnswer;
    try {
      got = await ask();
    } catch (thrown) {
      done(undefined, IdmintError.from(thrown).reason);
      return;
    }
    done(got, "");
  };
  return {
    call: (done) => void call(done),
    close: async () => client.close(),
  };
}
