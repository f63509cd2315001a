import type { Schema } from '../../../../shared/client/api.ts'
import { money, short } from '../../base/format.ts'
import { hrefOf } from '../../base/router.ts'
import { LongTable } from '../../parts/long-table.tsx'
import { nameOf } from '../../parts/run-facts.ts'
import { StateBadge } from '../../parts/state-badge.tsx'
import { Ago, Took } from '../../parts/time.tsx'

export const RunTable = ({ runs }: { runs: readonly Schema<'Run'>[] }) => (
  <LongTable look="runs" head={HEAD} items={runs} row={rowOf} />
)

const rowOf = (run: Schema<'Run'>, number: number) => <Row key={run.run_id} run={run} number={number} />

const HEAD = (
  <>
    <th role="columnheader">State</th>
    <th role="columnheader">What</th>
    <th role="columnheader">Kind</th>
    <th role="columnheader">Model</th>
    <th role="columnheader">Started by</th>
    <th role="columnheader" class="right">
      Tokens
    </th>
    <th role="columnheader" class="right">
      Cost
    </th>
    <th role="columnheader" class="right">
      Took
    </th>
    <th role="columnheader">Started</th>
  </>
)

const Row = ({ run, number }: { run: Schema<'Run'>; number: number }) => (
  <tr role="row" aria-rowindex={number}>
    <td role="cell">
      <StateBadge state={run.status} />
    </td>
    <td role="cell" class="whole">
      <a class="lines" href={hrefOf(`/activity/${run.run_id}`)}>
        {nameOf(run)}
      </a>
      {run.code !== undefined && run.code !== 'ok' && <code class="soft"> {run.code}</code>}
    </td>
    <td role="cell">{run.kind}</td>
    <td role="cell">{run.model ?? '–'}</td>
    <td role="cell">{run.subject ?? '–'}</td>
    <td role="cell" class="right number">
      {run.input_tokens === undefined ? '–' : short(run.input_tokens + (run.output_tokens ?? 0))}
      <span class="unit"> tokens</span>
    </td>
    <td role="cell" class="right number">
      {run.cost_usd === undefined ? '–' : money(run.cost_usd)}
    </td>
    <td role="cell" class="right">
      <Took from={run.started_at} to={run.ended_at} />
    </td>
    <td role="cell">
      <Ago at={run.started_at} />
    </td>
  </tr>
)
