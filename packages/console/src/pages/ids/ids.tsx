import { comesFrom } from "@idmint/core/kinds";
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { call } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import type { ResponseOf } from "../../api/json.ts";
import { Button } from "../../parts/button.tsx";
import { CliLine } from "../../parts/cli-line.tsx";
import { TextField } from "../../parts/field.tsx";
import { Loaded } from "../../parts/loaded.tsx";
import { Failure } from "../../parts/failure.tsx";
import { Facts, PageView, Section } from "../../parts/page.tsx";
import { setQuery } from "../../state/location.ts";
import { usePoll } from "../../state/polling.ts";
import { may } from "../../state/sign-in.ts";
import { cliLine } from "../../text/cli.ts";
import { countText, timeText } from "../../text/format.ts";
import { t, tOr } from "../../text/text.ts";
import type { PageProps } from "../page.ts";
import { countOf, type Entry } from "../tags/model/holders.ts";
import { answersText, idValue } from "../tags/model/id-value.ts";
import { kindOf } from "../tags/model/tag-values.ts";

type Decoded = ResponseOf<"IdService", "decodeId">;
type Found = ResponseOf<"TagService", "lookupId">;

/** What an id says is said for ever; who had it may change with what the ledger keeps. */
const EVERY_MS = 30_000;

interface Answer {
  readonly decoded: Decoded;
  /** Undefined: the kind has no ledger, or the caller may not look. */
  readonly found: Found | ApiError | undefined;
}

async function lookUp(tag: string, id: string, signal: AbortSignal): Promise<Answer> {
  const got = await call("TagService", "getTag", { name: tag }, { signal });
  const kind = got.tag === undefined || got.tag === null ? undefined : kindOf(got.tag);
  const isText = kind !== undefined && answersText(got.tag ?? {}, kind);
  const value = idValue(id, isText);
  const decoded = await call("IdService", "decodeId", { tag, ...value }, { signal });
  const hasLedger = kind !== undefined && comesFrom({ kind }, "segments");
  if (!hasLedger || !may("observe", tag)) return { decoded, found: undefined };
  try {
    const found = await call("TagService", "lookupId", { tag, ...value }, { signal });
    return { decoded, found };
  } catch (thrown) {
    // What the id is made of is worth showing by itself.
    if (thrown instanceof ApiError) return { decoded, found: thrown };
    throw thrown;
  }
}

/** Takes an id apart, and says who was given it. */
export function Ids({ query }: PageProps): JSX.Element {
  const { tag = "", id = "" } = query;
  const typedTag = useSignal(tag);
  const typedId = useSignal(id);
  return (
    <PageView title={t("ids.title")}>
      <p class="soft">{t("ids.text")}</p>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          setQuery({ tag: typedTag.value.trim(), id: typedId.value.trim() }, { replace: false });
        }}
      >
        <TextField
          label={t("ids.tag")}
          value={typedTag.value}
          required
          maxLength={128}
          onInput={(value) => {
            typedTag.value = value;
          }}
        />
        <TextField
          label={t("ids.id")}
          value={typedId.value}
          required
          maxLength={512}
          onInput={(value) => {
            typedId.value = value;
          }}
        />
        <Button type="submit" look="main">
          {t("ids.do")}
        </Button>
      </form>
      {tag !== "" && id !== "" && <Result key={`${tag}\n${id}`} tag={tag} id={id} />}
    </PageView>
  );
}

function Result({ tag, id }: { readonly tag: string; readonly id: string }): JSX.Element {
  const poll = usePoll(`${tag}\n${id}`, (signal) => lookUp(tag, id, signal), {
    everyMs: EVERY_MS,
  });
  return (
    <Loaded poll={poll}>
      {({ decoded, found }) => (
        <>
          <Section title={t("ids.parts")}>
            <Parts decoded={decoded} />
            <CliLine line={cliLine(["id", "decode", tag, id])} />
          </Section>
          {found !== undefined && (
            <Section title={t("ids.who")}>
              {found instanceof ApiError ? <Failure error={found} /> : <Who found={found} />}
              <CliLine line={cliLine(["id", "who", tag, id])} />
            </Section>
          )}
        </>
      )}
    </Loaded>
  );
}

function Parts({ decoded }: { readonly decoded: Decoded }): JSX.Element {
  const { id, time, snowflake, parts, uuidVersion, keyId } = decoded;
  const facts: (readonly [string, JSX.Element | string])[] = [];
  if (id !== "0") facts.push([t("ids.number"), mono(id)]);
  if (uuidVersion !== 0) facts.push([t("ids.uuid_version"), String(uuidVersion)]);
  if (keyId !== 0) facts.push([t("ids.key"), String(keyId)]);
  if (time !== undefined && time !== null) facts.push([t("ids.time"), timeText(time)]);
  if (snowflake !== undefined && snowflake !== null) {
    facts.push(
      [t("ids.ticks"), mono(snowflake.ticks)],
      [t("bits.extension"), String(snowflake.extension)],
      [t("bits.data_center"), String(snowflake.dataCenter)],
      [t("bits.worker"), String(snowflake.worker)],
      [t("bits.sequence"), String(snowflake.sequence)],
    );
  }
  const isPlain = facts.length < 2 && parts.length === 0;
  return (
    <>
      <Facts facts={facts} />
      {isPlain && <p class="soft">{t("ids.no_parts")}</p>}
      {parts.length > 0 && (
        <ol class="text-parts">
          {parts.map(({ name, value }, i) => (
            <li key={`${i} ${name}`}>
              <span class="mono foreign">{value}</span>
              <small class="soft">{name === "" ? t("ids.fixed_text") : name}</small>
            </li>
          ))}
        </ol>
      )}
    </>
  );
}

function mono(text: string): JSX.Element {
  return <span class="mono foreign">{text}</span>;
}

function Who({ found }: { readonly found: Found }): JSX.Element {
  const { result } = found;
  const [server, client] = [found.server ?? undefined, found.client ?? undefined];
  return (
    <>
      <p>{tOr("lookup", result)}</p>
      {client !== undefined && (
        <>
          <p class="foreign">{clientText(client)}</p>
          <p>{segmentText(client)}</p>
        </>
      )}
      {client === undefined && server !== undefined && (
        <>
          <p class="foreign">
            {t("ids.who_server", {
              server: server.server || server.nodeId,
              time: timeText(server.time ?? ""),
            })}
          </p>
          <p>{segmentText(server)}</p>
        </>
      )}
    </>
  );
}

function clientText({ instance, principal, server, nodeId, time }: Entry): string {
  const name = instance === "" ? t("ledger.unnamed") : instance;
  const client = principal === "" ? name : `${name} (${t("ids.proved", { principal })})`;
  return t("ids.who_client", { client, server: server || nodeId, time: timeText(time ?? "") });
}

function segmentText(entry: Entry): string {
  const { firstId: first, lastId: last } = entry;
  return t("ids.segment", { count: countText(countOf(entry)), first, last });
}
