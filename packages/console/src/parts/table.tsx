import type { ComponentChildren, JSX } from "preact";

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Numbers stand at the right, so that their digits line up. */
  readonly isNumber?: boolean;
  /** Names the row: a header of it to screen readers. */
  readonly isHead?: boolean;
}

interface TableProps<Row> {
  /** What it is a table of; heard, not seen. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /** What is shown instead of a table without rows. */
  readonly empty: ComponentChildren;
}

/**
 * A table; on a narrow screen each row is a card. The roles are written down, since a style that makes cards takes them away
 * in some browsers.
 */
export function Table<Row>({ caption, columns, rows, keyOf, empty }: TableProps<Row>): JSX.Element {
  if (rows.length === 0) return <div class="empty">{empty}</div>;
  return (
    <table class="table" role="table">
      <caption class="heard">{caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map(({ title, isNumber }) => (
            <th key={title} role="columnheader" scope="col" class={isNumber ? "number" : undefined}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row) => (
          <tr key={keyOf(row)} role="row">
            {columns.map((column) => (
              <Cell key={column.title} column={column} row={row} />
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Cell<Row>({
  column: { title, cell, isNumber, isHead },
  row,
}: {
  readonly column: Column<Row>;
  readonly row: Row;
}): JSX.Element {
  const look = isNumber === true ? "number" : undefined;
  return isHead === true ? (
    <th role="rowheader" scope="row" class={look} data-label={title}>
      <div>{cell(row)}</div>
    </th>
  ) : (
    <td role="cell" class={look} data-label={title}>
      <div>{cell(row)}</div>
    </td>
  );
}
