import type { JSX } from "preact";
import { comesFrom, specOf, wordOf } from "@idmint/core/kinds";
import { call } from "../../api/client.ts";
import { Button } from "../../parts/button.tsx";
import { CliLine } from "../../parts/cli-line.tsx";
import { Loaded } from "../../parts/loaded.tsx";
import { Facts, PageView, Section } from "../../parts/page.tsx";
import { setQuery } from "../../state/location.ts";
import { usePoll } from "../../state/polling.ts";
import { hrefOf } from "../../state/route-state.ts";
import { may } from "../../state/sign-in.ts";
import { cliLine } from "../../text/cli.ts";
import { timeText } from "../../text/format.ts";
import { t } from "../../text/text.ts";
import type { PageProps } from "../page.ts";
import { actionsOf, TagDialog } from "./actions.tsx";
import { hasPeriods } from "./about-tag.ts";
import { Capacity } from "./capacity.tsx";
import { Charts } from "./charts.tsx";
import { Effect, type EffectOfTag } from "./effect.tsx";
import { labelOf } from "./field-text.ts";
import { Ledger } from "./ledger.tsx";
import { formFields } from "./model/fields.ts";
import { formOfTag, highestIdOf, kindOf, settingsOfTag, type TagJson } from "./model/tag-values.ts";
import { Periods } from "./periods.tsx";
import { LayoutBits } from "./layout-bits.tsx";
import { Id, TagBadge } from "./tags.tsx";

const EVERY_MS = 2_000;

/** Who may look at a tag hears when its last change is in effect; who may only take ids sees the tag. */
async function load(name: string, signal: AbortSignal): Promise<EffectOfTag> {
  if (may("observe", name)) return call("TagService", "getTagEffect", { name }, { signal });
  const { tag } = await call("TagService", "getTag", { name }, { signal });
  return { tag };
}

/** One tag: what it is and does, and all that can be done with it. */
export function TagPage({ params, query }: PageProps): JSX.Element {
  const name = params["tag"] ?? "";
  const key = `tag\n${name}\n${String(may("observe", name))}`;
  const poll = usePoll(key, (signal) => load(name, signal), { everyMs: EVERY_MS });
  const tag = poll.state.value.data?.tag ?? undefined;
  const actions = tag === undefined ? [] : actionsOf(tag);
  const open = actions.find((action) => action === query["do"]);
  const close = (): void => {
    setQuery({ do: undefined });
    poll.refresh();
  };
  return (
    <PageView
      title={name}
      actions={actions.map((action) => (
        <Button
          key={action}
          look={action === "delete" ? "danger" : "plain"}
          onClick={() => setQuery({ do: action }, { replace: false })}
        >
          {t(`tag.${action}`)}
        </Button>
      ))}
    >
      <Loaded poll={poll}>
        {(effect) =>
          tag !== undefined && (
            <>
              <States tag={tag} effect={effect} />
              <Views tag={tag} query={query} />
            </>
          )
        }
      </Loaded>
      {open !== undefined && tag !== undefined && (
        <TagDialog key={open} action={open} tag={tag} onClose={close} />
      )}
    </PageView>
  );
}

interface ViewProps {
  readonly tag: TagJson;
  readonly effect: EffectOfTag;
  readonly query: Readonly<Record<string, string>>;
}

function States({ tag, effect }: Pick<ViewProps, "effect" | "tag">): JSX.Element {
  return (
    <>
      {tag.state === "TAG_STATE_PAUSED" && <p class="notice">{t("tag.paused")}</p>}
      {tag.state === "TAG_STATE_DELETED" && <p class="notice bad">{t("tag.gone")}</p>}
      <Effect effect={effect} />
    </>
  );
}

/** The views of a tag are links: each has an address. */
function Views({ tag, query }: Pick<ViewProps, "query" | "tag">): JSX.Element {
  const { name } = tag;
  const kind = kindOf(tag);
  const views = may("observe", name)
    ? ([
        "overview",
        ...(kind !== undefined && comesFrom({ kind }, "segments") ? (["ledger"] as const) : []),
        ...(hasPeriods(tag) ? (["periods"] as const) : []),
      ] as const)
    : (["overview"] as const);
  const view = views.find((one) => one === query["view"]) ?? "overview";
  return (
    <>
      {views.length > 1 && (
        <nav class="tabs" aria-label={t("tag.views")}>
          {views.map((one) => (
            <a
              key={one}
              href={hrefOf("tags/:tag", { tag: name }, one === "overview" ? {} : { view: one })}
              aria-current={one === view ? "page" : undefined}
            >
              {t(`tag.${one}`)}
            </a>
          ))}
        </nav>
      )}
      {view === "ledger" && <Ledger tag={name} page={query["page"] ?? ""} />}
      {view === "periods" && <Periods tag={name} page={query["page"] ?? ""} />}
      {view === "overview" && <Overview tag={tag} />}
    </>
  );
}

function Overview({ tag }: { readonly tag: TagJson }): JSX.Element {
  const { name } = tag;
  return (
    <>
      <Section title={t("tags.state")}>
        <Facts facts={factsOf(tag)} />
      </Section>
      {may("observe", name) && tag.state !== "TAG_STATE_DELETED" && (
        <>
          <Charts tag={name} />
          <Capacity tag={name} />
        </>
      )}
      <Settings tag={tag} />
      <CliLine line={cliLine(["tag", "get", name])} />
    </>
  );
}

type Fact = readonly [name: string, value: JSX.Element | string];

function factsOf(tag: TagJson): readonly Fact[] {
  const { state, ceiling, version, epoch, period, createTime, updateTime, etag } = tag;
  const highest = highestIdOf(tag);
  const kind = kindOf(tag);
  const hasCeiling = kind === undefined || specOf({ kind }).ids === "number";
  return [
    [t("tags.state"), <TagBadge key="state" state={state} />],
    ...(highest === undefined
      ? []
      : [[t("tags.floor"), <Id key="floor" text={highest} />] as const]),
    ...(hasCeiling ? [[t("tags.ceiling"), <Id key="ceiling" text={ceiling} />] as const] : []),
    ...(period === "" ? [] : [[t("tag.period"), period] as const]),
    [t("tag.epoch"), epoch],
    [t("tag.version"), version],
    [t("tag.created"), timeText(createTime ?? "")],
    [t("tags.updated"), timeText(updateTime ?? "")],
    [t("tag.etag"), <Id key="etag" text={etag} />],
  ];
}

/** What the tag was made with, as a form would ask for it. */
function Settings({ tag }: { readonly tag: TagJson }): JSX.Element {
  const kind = kindOf(tag);
  if (kind === undefined) {
    return (
      <Section title={t("tag.settings")}>
        <p class="empty">{t("kind.unknown")}</p>
      </Section>
    );
  }
  const typed = formOfTag(tag, kind);
  const settings = settingsOfTag(tag, kind);
  const bits = specOf(settings).composed?.bits(settings) ?? [];
  const facts = formFields(kind).flatMap(({ path, field }) => {
    const text = typed[path] ?? "";
    if (text === "" || path === "ceiling") return [];
    const isWord = field.type === "enum" || field.type === "bool";
    const shown = isWord ? wordOf(text) : <span class="foreign">{text}</span>;
    return [[labelOf(path, field), shown] as const];
  });
  return (
    <Section title={t("tag.settings")}>
      {bits.length > 0 && <LayoutBits bits={bits} />}
      <Facts facts={[[t("tags.kind"), wordOf(kind)], ...facts]} />
    </Section>
  );
}
