import { type Command, Option } from "commander";
import { setTimeout as sleep } from "node:timers/promises";
import type { GetIssuingResponse } from "@idmint/proto";
import type { Send } from "../../calls/connection.ts";
import { EXIT } from "../../process/exit-code.ts";
import { CommandFailure, failureOf } from "../../calls/failure.ts";
import type { Io } from "../../process/io.ts";
import { timeText } from "../../text/kind-text.ts";
import { laggardText, type TagAnswer } from "./tag-parts.ts";

/** --wait, as typed. */
export interface WaitFlag {
  readonly wait?: boolean;
}

/** What a server answers of a change that is made, whatever it was of. */
type Effect = Pick<
  GetIssuingResponse,
  "effectiveTime" | "laggingNodes" | "laggingNodeCount" | "inEffect" | "heldForEver"
>;

/** How often a server is asked, at first and later. */
const ASK_EVERY_MS = 200;
const ASK_LATER_EVERY_MS = 1_000;
const LATER_AFTER_MS = 10_000;
/** The wait ends when servers do not answer for longer. The change stays made. */
const MAX_AWAY_MS = 30_000;
/** Times that are nearer to each other are the same one. */
const SAME_TIME_MS = 1_000;
/** Most lagging servers that one line of progress names. */
const MAX_NAMED = 3;

/** --wait, for a command whose change ends something. */
export function withWait(command: Command): Command {
  const text = "wait until nobody issues what the change has ended, with progress on stderr";
  return command.addOption(new Option("--wait", text));
}

/** The answer to a change, after the wait that the command line asks for. */
export async function awaited<Answer extends TagAnswer>(
  io: Io,
  send: Send,
  answer: Answer,
  { wait = false }: WaitFlag,
): Promise<Answer> {
  const name = answer.tag?.name;
  if (!wait || name === undefined) {
    tellOfLaggards(io, answer);
    return answer;
  }
  const effect = await untilInEffect(io, async () =>
    send(({ tags }) => tags.getTagEffect.bind(tags), { name }),
  );
  const { tag, effectiveTime, laggingNodes, laggingNodeCount } = effect;
  return { ...answer, tag, effectiveTime, laggingNodes, laggingNodeCount };
}

/** For who does not wait. */
export function tellOfLaggards(
  io: Io,
  { laggingNodeCount = 0 }: { readonly laggingNodeCount?: number },
): void {
  if (laggingNodeCount === 0) return;
  io.err("idmint: not all servers have confirmed yet; --wait waits for them\n");
}

/** Asks again and again until a change is in effect. */
export async function untilInEffect<Answer extends Effect>(
  io: Io,
  askOnce: () => Promise<Answer>,
): Promise<Answer> {
  const start = performance.now();
  let heardAt = start;
  let told: Progress | undefined;
  for (;;) {
    // Each question follows what the one before was answered.
    const effect = await ask(askOnce, () => performance.now() - heardAt < MAX_AWAY_MS).catch(
      (thrown: unknown) => {
        throw io.signal.aborted ? interrupted(thrown) : thrown;
      },
    );
    const now = performance.now();
    if (effect !== undefined) {
      heardAt = now;
      if (effect.inEffect) return effect;
      if (effect.heldForEver && effect.laggingNodeCount === 0) throw heldForEver();
      const progress = progressOf(effect);
      if (isNews(progress, told)) {
        io.err(progress.text);
        told = progress;
      }
    }
    const everyMs = now - start < LATER_AFTER_MS ? ASK_EVERY_MS : ASK_LATER_EVERY_MS;
    await sleep(everyMs, undefined, { signal: io.signal }).catch(() => undefined);
  }
}

/** The failure where the wait would never end. */
function heldForEver(): CommandFailure {
  const text =
    "the change is made and every server has confirmed it, but Tinyid's clients keep the segments that they hold (tinyid_step), and nobody knows when they have used them up; end or restart these clients";
  return new CommandFailure(failureOf("FAILED_PRECONDITION", "FAILED_PRECONDITION", text));
}

/** The failure after Ctrl-C. Whoever pressed it should not take the change for undone. */
function interrupted(cause: unknown): CommandFailure {
  const text = "interrupted; the change is made, and only the wait for it has ended";
  return new CommandFailure(failureOf("CANCELLED", "CALL_CANCELLED", text), cause);
}

/** Asks a server. Undefined when none answered and it is worth asking again. */
async function ask<Answer>(
  askOnce: () => Promise<Answer>,
  hasPatience: () => boolean,
): Promise<Answer | undefined> {
  try {
    return await askOnce();
  } catch (thrown) {
    const isAway = thrown instanceof CommandFailure && thrown.failure.exitCode === EXIT.unavailable;
    if (!isAway || !hasPatience()) throw thrown;
    return undefined;
  }
}

/** One line of progress. */
interface Progress {
  readonly text: string;
  /** Whom it names. */
  readonly who: string;
  /** The time it names, or 0. */
  readonly untilMs: number;
}

/** Servers compute their times anew for each answer, so these differ a little though nothing has changed. */
function isNews({ who, untilMs }: Progress, told: Progress | undefined): boolean {
  return told?.who !== who || Math.abs(told.untilMs - untilMs) >= SAME_TIME_MS;
}

function progressOf(effect: Effect): Progress {
  const { laggingNodes, laggingNodeCount, effectiveTime } = effect;
  const untilMs = effectiveTime?.getTime() ?? 0;
  if (laggingNodeCount === 0) {
    const until = effectiveTime === undefined ? "the store answers" : timeText(effectiveTime);
    const text = `idmint: every server has confirmed; callers may use what they hold until ${until}\n`;
    return { text, who: "", untilMs };
  }
  const shown = laggingNodes.slice(0, MAX_NAMED);
  const more = laggingNodeCount - shown.length;
  const all = [...shown.map(laggardText), ...(more > 0 ? [`and ${more} more`] : [])].join("; ");
  const text = `idmint: waiting for ${laggingNodeCount} of the servers: ${all}\n`;
  const who = `${shown.map(({ nodeId }) => nodeId).join(" ")} ${more}`;
  return { text, who, untilMs };
}
