import { useMemo } from 'preact/hooks'
import type { Schema } from '../../../../shared/client/api.ts'
import { hrefOf } from '../../base/router.ts'
import { LongTable } from '../../parts/long-table.tsx'
import { type Column, columnsOf } from './list/columns.tsx'
import { keptViews } from './list/kept-views.ts'

type Run = Schema<'Run'>

/** `compared`: set while the reader chooses two runs to compare; it is the first chosen run, or none yet. */
type RunTableProps = { runs: readonly Run[]; compared: string | undefined; path: (compared: string) => string }

export function RunTable({ runs, compared, path }: RunTableProps) {
  const { columns: kept } = keptViews()
  const columns = useMemo(() => columnsOf(kept), [kept])
  // The rows are drawn again when the columns or the choice change.
  const row = useMemo(
    () => rowWith(columns, compared === undefined ? undefined : { compared, path }),
    [columns, compared],
  )
  const widths = [...(compared === undefined ? [] : ['128px']), ...columns.map(({ width }) => width)]
  return (
    <LongTable
      look="runs"
      columns={widths.join(' ')}
      head={
        <>
          {compared !== undefined && <th role="columnheader">Compare</th>}
          {columns.map(({ id, title, isRight }) => (
            <th key={id} role="columnheader" class={isRight ? 'right' : ''}>
              {title}
            </th>
          ))}
        </>
      }
      items={runs}
      row={row}
    />
  )
}

type Choice = { compared: string; path: (compared: string) => string }

const rowWith = (columns: readonly Column[], choice: Choice | undefined) => (run: Run, number: number) => (
  <tr key={run.run_id} role="row" aria-rowindex={number}>
    {choice && (
      <td role="cell">
        <Choose run={run} {...choice} />
      </td>
    )}
    {columns.map(({ id, isRight, isWhole, cell }) => (
      <td key={id} role="cell" class={isWhole ? 'whole' : isRight ? 'right number' : ''}>
        {cell(run) || <span class="soft">–</span>}
      </td>
    ))}
  </tr>
)

/** The first choice is part of the address, and the second one opens the comparison. */
const Choose = ({ run: { run_id: id }, compared, path }: Choice & { run: Run }) =>
  id === compared ? (
    <span class="badge good">Chosen</span>
  ) : (
    <a class="button" href={compared.startsWith('run_') ? hrefOf(`/activity/${compared}`, { with: id }) : path(id)}>
      {compared.startsWith('run_') ? 'With this' : 'Choose'}
    </a>
  )
