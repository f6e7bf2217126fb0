import { CoordinationError } from "../errors.ts";
import type { RedisNode } from "./node.ts";
import { runScript, type Script } from "./script.ts";

/**
 * Runs a script that would do its work twice if it were called again. When it was sent and no answer came, the error is
 * OUTCOME_UNKNOWN; every other error means that nothing was done.
 */
export async function scriptOnce(
  node: RedisNode,
  what: string,
  script: Script,
  values: { readonly keys: readonly string[]; readonly args: readonly (string | number)[] },
  timeoutMs: number,
): Promise<unknown> {
  let isUnknown = false;
  const send = async (): Promise<unknown> => {
    isUnknown = true;
    try {
      return await runScript(node.redis, script, values.keys, values.args);
    } catch (error) {
      // An error that Redis answered with is an outcome: these scripts write nothing before the first that can fail.
      if (error instanceof Error && error.name === "ReplyError") isUnknown = false;
      throw error;
    }
  };
  try {
    return await node.run(what, send, { timeoutMs });
  } catch (error) {
    if (!isUnknown || !(error instanceof CoordinationError)) throw error;
    if (error.reason !== "NODE_UNAVAILABLE") throw error;
    const text = `${what} was sent, and no answer came: it may have been done, and another try may do it twice`;
    throw new CoordinationError("OUTCOME_UNKNOWN", text, { cause: error });
  }
}
