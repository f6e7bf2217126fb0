import type { JSX } from "preact";
import { call } from "../../api/client.ts";
import type { ResponseOf } from "../../api/json.ts";
import { Badge, type Mood } from "../../parts/badge.tsx";
import { Loaded } from "../../parts/loaded.tsx";
import { Facts, PageView, Section } from "../../parts/page.tsx";
import { usePoll } from "../../state/polling.ts";
import { countText, timeText } from "../../text/format.ts";
import { t, tOr } from "../../text/text.ts";

type Status = ResponseOf<"NodeService", "getNodeStatus">;

const MOODS: Readonly<Record<string, Mood>> = {
  NODE_STATE_SERVING: "good",
  NODE_STATE_DRAINING: "warn",
  NODE_STATE_DEGRADED: "bad",
  NODE_STATE_STOPPED: "bad",
  STORE_STATE_GRANTING: "good",
  STORE_STATE_UNREACHABLE: "bad",
  STORE_STATE_FENCED: "bad",
};

export function Overview(): JSX.Element {
  const status = usePoll("status", (signal) =>
    call("NodeService", "getNodeStatus", {}, { signal }),
  );
  return (
    <PageView title={t("overview.title")}>
      <Section title={t("overview.this_node")}>
        <Loaded poll={status}>{(data) => <StatusFacts status={data} />}</Loaded>
      </Section>
    </PageView>
  );
}

function StatusFacts({ status }: { readonly status: Status }): JSX.Element {
  const { store } = status;
  return (
    <Facts
      facts={[
        [t("overview.this_node"), <StateBadge key="node" state={status.state} />],
        [t("overview.store"), <StateBadge key="store" state={store?.state ?? ""} />],
        ["version", status.version],
        ["place", store?.place],
        ["issued", countText(status.issuedIds)],
        ["start", timeText(status.startTime ?? "")],
      ]}
    />
  );
}

function StateBadge({ state }: { readonly state: string }): JSX.Element {
  return <Badge mood={MOODS[state] ?? "idle"}>{tOr("state", state)}</Badge>;
}
