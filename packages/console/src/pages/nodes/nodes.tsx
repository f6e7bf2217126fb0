import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { call } from "../../api/client.ts";
import { Badge } from "../../parts/badge.tsx";
import { Button } from "../../parts/button.tsx";
import { TextField } from "../../parts/field.tsx";
import { Loaded } from "../../parts/loaded.tsx";
import { PageView, Section } from "../../parts/page.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { setQuery } from "../../state/location.ts";
import { usePoll } from "../../state/polling.ts";
import { may } from "../../state/sign-in.ts";
import { numberText, timeText } from "../../text/format.ts";
import { t } from "../../text/text.ts";
import type { PageProps } from "../page.ts";
import { DrainDialog, ForgetDialog, UndrainDialog, WeightDialog } from "./dialogs.tsx";
import { matching, type Node, versionsOf, zonesOf } from "./nodes-state.ts";

const PAGE_SIZE = 1_000;
/** More servers than one store will ever have. */
const MAX_PAGES = 10;

type Verb = "drain" | "undrain" | "weight" | "forget";

/** All servers on the store. */
async function allNodes(signal: AbortSignal): Promise<readonly Node[]> {
  const nodes: Node[] = [];
  let pageToken = "";
  for (let page = 0; page < MAX_PAGES; page++) {
    const request = { pageSize: PAGE_SIZE, pageToken };
    const answer = await call("NodeService", "listNodes", request, { signal });
    nodes.push(...answer.nodes);
    pageToken = answer.nextPageToken;
    if (pageToken === "") break;
  }
  return nodes;
}

export function Nodes({ query }: PageProps): JSX.Element {
  const poll = usePoll("nodes", allNodes);
  const open = useSignal<{ readonly verb: Verb; readonly node: Node } | undefined>(undefined);
  const typed = query["q"] ?? "";
  const close = (): void => {
    open.value = undefined;
    poll.refresh();
  };
  const ask = (verb: Verb, node: Node): void => {
    open.value = { verb, node };
  };
  return (
    <PageView title={t("nodes.title")}>
      <Loaded poll={poll}>
        {(nodes) => (
          <>
            <VersionNotice nodes={nodes} />
            <div class="filters">
              <TextField
                label={t("nodes.filter")}
                type="search"
                value={typed}
                onInput={(q) => setQuery({ q })}
              />
            </div>
            <Zones nodes={matching(nodes, typed)} onAsk={ask} />
            {open.value !== undefined && (
              <NodeDialog {...open.value} nodes={nodes} onClose={close} />
            )}
          </>
        )}
      </Loaded>
    </PageView>
  );
}

/** Two releases run side by side during an upgrade, and not for long. */
function VersionNotice({ nodes }: { readonly nodes: readonly Node[] }): JSX.Element | null {
  const versions = versionsOf(nodes);
  if (versions.length < 2) return null;
  const listed = versions.map(({ version, count }) => `${version} (${numberText(count)})`);
  return (
    <p class="notice" role="status">
      {t("nodes.versions", { versions: listed.join(", ") })}
    </p>
  );
}

interface ZonesProps {
  readonly nodes: readonly Node[];
  readonly onAsk: (verb: Verb, node: Node) => void;
}

function Zones({ nodes, onAsk }: ZonesProps): JSX.Element {
  if (nodes.length === 0) return <div class="empty">{t("nodes.none")}</div>;
  return (
    <>
      {zonesOf(nodes).map(({ name, nodes: its }) => (
        <Section key={name} title={name === "" ? t("nodes.no_zone") : name}>
          <Table
            caption={t("nodes.in_zone", { zone: name === "" ? t("nodes.no_zone") : name })}
            columns={columnsOf(onAsk)}
            rows={its}
            keyOf={({ nodeId }) => nodeId}
            empty={t("nodes.none")}
          />
        </Section>
      ))}
    </>
  );
}

function columnsOf(onAsk: ZonesProps["onAsk"]): readonly Column<Node>[] {
  const columns: readonly Column<Node>[] = [
    {
      title: t("nodes.server"),
      isHead: true,
      cell: ({ instance, nodeId }) => (
        <>
          <span class="foreign">{instance}</span>
          <small class="mono soft">{nodeId}</small>
        </>
      ),
    },
    { title: t("nodes.state"), cell: (node) => <NodeState node={node} /> },
    { title: t("nodes.weight"), isNumber: true, cell: ({ weight }) => numberText(weight) },
    {
      title: t("nodes.address"),
      cell: ({ address }) => (address === "" ? t("common.none") : address),
    },
    { title: t("nodes.version"), cell: ({ version }) => version },
    { title: t("nodes.heard"), cell: ({ heardTime }) => timeText(heardTime ?? "") },
  ];
  if (!may("admin")) return columns;
  return [
    ...columns,
    { title: t("nodes.actions"), cell: (node) => <Actions node={node} onAsk={onAsk} /> },
  ];
}

function NodeState({ node: { alive, draining } }: { readonly node: Node }): JSX.Element {
  if (!alive) return <Badge tone="bad">{t("nodes.silent")}</Badge>;
  return draining ? (
    <Badge tone="warn">{t("nodes.drained")}</Badge>
  ) : (
    <Badge tone="good">{t("nodes.alive")}</Badge>
  );
}

function Actions({
  node,
  onAsk,
}: {
  readonly node: Node;
  readonly onAsk: ZonesProps["onAsk"];
}): JSX.Element {
  const verbs: readonly Verb[] = [
    node.draining ? "undrain" : "drain",
    "weight",
    ...(node.alive ? [] : (["forget"] as const)),
  ];
  return (
    <span class="row-actions">
      {verbs.map((verb) => (
        <Button
          key={verb}
          look="small"
          label={t("nodes.do_for", { verb: t(`nodes.${verb}`), server: node.instance })}
          onClick={() => onAsk(verb, node)}
        >
          {t(`nodes.${verb}`)}
        </Button>
      ))}
    </span>
  );
}

function NodeDialog({
  verb,
  ...props
}: {
  readonly verb: Verb;
  readonly node: Node;
  readonly nodes: readonly Node[];
  readonly onClose: () => void;
}): JSX.Element {
  if (verb === "drain") return <DrainDialog {...props} />;
  if (verb === "undrain") return <UndrainDialog {...props} />;
  return verb === "weight" ? <WeightDialog {...props} /> : <ForgetDialog {...props} />;
}
