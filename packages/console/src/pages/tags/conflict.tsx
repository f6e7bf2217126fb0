import type { JSX } from "preact";
import { Button } from "../../parts/button.tsx";
import { Table } from "../../parts/table.tsx";
import { t } from "../../text/text.ts";
import { labelOf } from "./field-text.ts";
import { type Difference, differences } from "./model/changes.ts";
import type { FormValues } from "./model/fields.ts";

interface ConflictProps {
  readonly base: FormValues;
  readonly mine: FormValues;
  readonly theirs: FormValues;
  readonly onKeep: () => void;
  readonly onDrop: () => void;
}

/** Two people changed a tag: what it was, what each made of it, and whose is to stay. */
export function Conflict({ base, mine, theirs, onKeep, onDrop }: ConflictProps): JSX.Element {
  const rows = differences(base, mine, theirs);
  return (
    <div class="conflict" role="alert">
      <h3>{t("conflict.title")}</h3>
      <p>{t("conflict.text")}</p>
      <Table
        caption={t("conflict.caption")}
        columns={[
          { title: t("conflict.field"), isHead: true, cell: Setting },
          { title: t("conflict.base"), cell: ({ base: was }) => <Value text={was} /> },
          { title: t("conflict.mine"), cell: ({ mine: is }) => <Value text={is} /> },
          { title: t("conflict.theirs"), cell: ({ theirs: other }) => <Value text={other} /> },
        ]}
        rows={rows}
        keyOf={({ path }) => path}
        empty={t("conflict.other")}
      />
      <div class="row-actions">
        <Button look="main" onClick={onKeep}>
          {t("conflict.keep")}
        </Button>
        <Button onClick={onDrop}>{t("conflict.drop")}</Button>
      </div>
    </div>
  );
}

function Setting({ path, isContested }: Difference): JSX.Element {
  return (
    <>
      {labelOf(path)}
      {isContested && <small class="bad-text">{t("conflict.contested")}</small>}
    </>
  );
}

function Value({ text }: { readonly text: string }): JSX.Element {
  return <span class="foreign">{text === "" ? t("common.none") : text}</span>;
}
