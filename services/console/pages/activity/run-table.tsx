import type { Schema } from '../../../../shared/client/api.ts'
import { money, short } from '../../base/format.ts'
import { hrefOf } from '../../base/router.ts'
import { nameOf } from '../../parts/run-facts.ts'
import { StateBadge } from '../../parts/state-badge.tsx'
import { Ago, Took } from '../../parts/time.tsx'

export const RunTable = ({ runs }: { runs: readonly Schema<'Run'>[] }) => (
  <div class="card table-wrap">
    <table class="table cards">
      <thead>
        <tr>
          <th>State</th>
          <th>What</th>
          <th>Kind</th>
          <th>Model</th>
          <th>Started by</th>
          <th class="right">Tokens</th>
          <th class="right">Cost</th>
          <th class="right">Took</th>
          <th>Started</th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <Row key={run.run_id} run={run} />
        ))}
      </tbody>
    </table>
  </div>
)

const Row = ({ run }: { run: Schema<'Run'> }) => (
  <tr>
    <td>
      <StateBadge state={run.status} />
    </td>
    <td class="whole what">
      <a class="lines" href={hrefOf(`/activity/${run.run_id}`)}>
        {nameOf(run)}
      </a>
      {run.code !== undefined && run.code !== 'ok' && <code class="soft"> {run.code}</code>}
    </td>
    <td>{run.kind}</td>
    <td>{run.model ?? '–'}</td>
    <td>{run.subject ?? '–'}</td>
    <td class="right number">
      {run.input_tokens === undefined ? '–' : short(run.input_tokens + (run.output_tokens ?? 0))}
    </td>
    <td class="right number">{run.cost_usd === undefined ? '–' : money(run.cost_usd)}</td>
    <td class="right">
      <Took from={run.started_at} to={run.ended_at} />
    </td>
    <td>
      <Ago at={run.started_at} />
    </td>
  </tr>
)
