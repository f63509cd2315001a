import type { Schema } from '../../../../../shared/client/api.ts'
import { duration, money, percent } from '../../../base/format.ts'
import { StateBadge } from '../../../parts/state-badge.tsx'
import { runOf } from '../flow.ts'

type Evaluation = Schema<'FlowEvaluation'>
type EvaluatedRun = Evaluation['runs'][number]

/** The result of an evaluation: both versions in numbers, then run by run. */
export const Report = ({ report }: { report: Evaluation }) => (
  <section class="stack" aria-label="Report">
    <Summary report={report} />
    <div class="card table-wrap">
      <table class="table cards">
        <thead>
          <tr>
            <th>Run</th>
            <th>v{report.published_version}</th>
            <th>v{report.version}</th>
            <th>Differences</th>
            <th class="right">Cost</th>
            <th class="right">Time</th>
          </tr>
        </thead>
        <tbody>
          {report.runs.map((run) => (
            <Row key={run.trace_id} run={run} />
          ))}
        </tbody>
      </table>
    </div>
  </section>
)

const Summary = ({ report }: { report: Evaluation }) => (
  <dl class="card figures">
    <Figure name="Pass rate" was={percent(report.published_pass_rate)} is={percent(report.pass_rate)} />
    <Figure name="Cost" was={money(report.published_cost_usd)} is={money(report.cost_usd)} />
    <Figure name="Time, p50" was={duration(report.published_latency_ms_p50)} is={duration(report.latency_ms_p50)} />
  </dl>
)

const Figure = ({ name, was, is }: { name: string; was: string; is: string }) => (
  <div>
    <dt class="small soft">{name}</dt>
    <dd class="number">
      <span class="soft">{was} →</span> <strong>{is}</strong>
    </dd>
  </div>
)

const Row = ({ run }: { run: EvaluatedRun }) => (
  <tr>
    <td>
      <a href={runOf(run.trace_id)}>{run.trace_id.slice(-8)}</a>
    </td>
    <td>
      <Verdict verdict={run.published_verdict} />
    </td>
    <td>
      <Verdict verdict={run.verdict} />
    </td>
    <td class="whole">
      <Differences run={run} />
    </td>
    <td class="right number">
      {money(run.published_cost_usd)} → {money(run.cost_usd)}
    </td>
    <td class="right number">
      {duration(run.published_duration_ms)} → {duration(run.duration_ms)}
    </td>
  </tr>
)

const Verdict = ({ verdict }: { verdict: string | null }) => <StateBadge state={verdict ?? 'failed'} />

const Differences = ({ run: { differences, error } }: { run: EvaluatedRun }) => (
  <>
    {error && <span class="problem">{error.message}</span>}
    {!error && differences.length === 0 && <span class="soft">none</span>}
    {differences.length > 0 && (
      <ul class="small differences">
        {differences.map(({ path, published, draft }, i) => (
          <li key={i}>
            <code>{path === '' ? 'the whole' : path}</code> <del>{JSON.stringify(published)}</del>{' '}
            <ins>{JSON.stringify(draft)}</ins>
          </li>
        ))}
      </ul>
    )}
  </>
)
