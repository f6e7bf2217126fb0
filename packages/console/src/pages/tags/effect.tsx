import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { call } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import type { ResponseOf } from "../../api/json.ts";
import { t } from "../../text/text.ts";
import { effectView, leftText } from "./model/effect-state.ts";
import { useNow } from "./use-now.ts";

/** A tag, and when its last change is in effect; without the latter for those who may not look. */
export type EffectOfTag = Pick<ResponseOf<"TagService", "getTagEffect">, "tag"> &
  Partial<ResponseOf<"TagService", "getTagEffect">>;

/** Counts down until the last change is in effect everywhere, by the server's clock. Nothing is shown when it is. */
export function Effect({ effect }: { readonly effect: EffectOfTag }): JSX.Element | null {
  const { inEffect, tag } = effect;
  // Nobody holds anything of a tag that was only made.
  const isNew = tag?.createTime === tag?.updateTime;
  if (inEffect === undefined || inEffect || isNew) return null;
  return <Countdown effect={effect} />;
}

function Countdown({ effect }: { readonly effect: EffectOfTag }): JSX.Element {
  const { laggingNodes = [], laggingNodeCount = 0 } = effect;
  const ahead = useClockAhead();
  const view = effectView({ ...effect, laggingNodeCount }, useNow(250), ahead);
  const servers = laggingNodes.map(({ instance }) => instance).join(", ");
  const text =
    view.state === "counting"
      ? t("effect.counting", { time: leftText(view.leftMs) })
      : t(`effect.${view.state}`);
  return (
    <div class="notice">
      {/* Heard once, not every second. */}
      <p>{text}</p>
      {servers !== "" && <p class="foreign">{t("effect.lagging", { servers })}</p>}
    </div>
  );
}

/** By how many milliseconds the server's clock is ahead of this machine's, give or take half of the way there and back. */
function useClockAhead(): number {
  const ahead = useSignal(0);
  useEffect(() => {
    const ended = new AbortController();
    const learn = async (): Promise<void> => {
      ahead.value = await ask(ended.signal);
    };
    void learn();
    return () => ended.abort();
  }, []);
  return ahead.value;
}

async function ask(signal: AbortSignal): Promise<number> {
  const before = Date.now();
  try {
    const { time } = await call("NodeService", "getNodeTime", {}, { signal });
    const ms = Date.parse(time ?? "");
    return Number.isNaN(ms) ? 0 : ms - (before + Date.now()) / 2;
  } catch (thrown) {
    if (thrown instanceof ApiError || signal.aborted) return 0;
    throw thrown;
  }
}
