import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { call } from "../../api/client.ts";
import type { ResponseOf } from "../../api/json.ts";
import { ActionDialog } from "../../parts/action-dialog.tsx";
import { TextField } from "../../parts/field.tsx";
import { say } from "../../parts/toasts.tsx";
import { numberText } from "../../text/format.ts";
import { t } from "../../text/text.ts";
import { forgetLine, trafficLine, weightLine } from "./cli-lines.ts";
import { isLast, type Node, serverOf } from "./nodes-state.ts";

interface DialogProps {
  readonly node: Node;
  readonly nodes: readonly Node[];
  readonly onClose: () => void;
}

const MAX_WEIGHT = 1_000;
const MAX_NAMED = 3;

/** Says that it is done, or who has not followed yet: the call waits a little for them. */
function sayDone(what: string, answer: ResponseOf<"NodeService", "drainNode">): void {
  const { laggingNodes, laggingNodeCount } = answer;
  if (laggingNodeCount === 0) return say(what);
  const named = laggingNodes.slice(0, MAX_NAMED).map(({ instance }) => instance);
  const servers = named.join(", ");
  const more = laggingNodeCount - named.length;
  const who = more > 0 ? t("nodes.and_more", { servers, count: numberText(more) }) : servers;
  say(`${what} ${t("nodes.lagging", { servers: who })}`, { isError: true });
}

export function DrainDialog({ node, nodes, onClose }: DialogProps): JSX.Element {
  const server = serverOf(node.instance);
  const its = nodes.filter(({ instance }) => serverOf(instance) === server);
  const endsAll = isLast(nodes, its);
  return (
    <ActionDialog
      title={t("nodes.drain_title", { server: node.instance })}
      cli={trafficLine("drain", node.instance)}
      verb={t("nodes.drain")}
      isDangerous
      confirm={endsAll ? node.instance : undefined}
      run={async () => {
        const answer = await call("NodeService", "drainNode", { node: node.instance });
        sayDone(t("nodes.drain_done", { server: node.instance }), answer);
      }}
      onClose={onClose}
    >
      <p>{t("nodes.drain_text")}</p>
      {endsAll && <p class="notice bad">{t("nodes.drain_last")}</p>}
    </ActionDialog>
  );
}

export function UndrainDialog({ node, onClose }: DialogProps): JSX.Element {
  return (
    <ActionDialog
      title={t("nodes.undrain_title", { server: node.instance })}
      cli={trafficLine("undrain", node.instance)}
      verb={t("nodes.undrain")}
      run={async () => {
        const answer = await call("NodeService", "undrainNode", { node: node.instance });
        sayDone(t("nodes.undrain_done", { server: node.instance }), answer);
      }}
      onClose={onClose}
    >
      <p>{t("nodes.undrain_text")}</p>
    </ActionDialog>
  );
}

export function WeightDialog({ node, onClose }: DialogProps): JSX.Element {
  const typed = useSignal(String(node.weight));
  const weight = /^\d{1,4}$/.test(typed.value) ? Number(typed.value) : Number.NaN;
  const isGood = weight <= MAX_WEIGHT;
  return (
    <ActionDialog
      title={t("nodes.weight_title", { server: node.instance })}
      cli={weightLine(node.instance, isGood ? weight : node.weight)}
      verb={t("nodes.weight_do")}
      isReady={isGood}
      run={async () => {
        const request = { node: node.instance, weight };
        const answer = await call("NodeService", "setNodeWeight", request);
        sayDone(t("nodes.weight_done", { server: node.instance, weight }), answer);
      }}
      onClose={onClose}
    >
      <p>{t("nodes.weight_text")}</p>
      <TextField
        label={t("nodes.weight")}
        help={t("nodes.weight_help")}
        error={isGood ? undefined : t("nodes.weight_bad", { max: numberText(MAX_WEIGHT) })}
        value={typed.value}
        maxLength={4}
        inputMode="numeric"
        onInput={(value) => {
          typed.value = value;
        }}
      />
    </ActionDialog>
  );
}

export function ForgetDialog({ node, onClose }: DialogProps): JSX.Element {
  return (
    <ActionDialog
      title={t("nodes.forget_title", { server: node.instance })}
      cli={forgetLine(node.nodeId)}
      verb={t("nodes.forget")}
      isDangerous
      confirm={node.instance}
      run={async () => {
        await call("NodeService", "forgetNode", { nodeId: node.nodeId });
        say(t("nodes.forget_done", { server: node.instance }));
      }}
      onClose={onClose}
    >
      <p>{t("nodes.forget_text")}</p>
    </ActionDialog>
  );
}
