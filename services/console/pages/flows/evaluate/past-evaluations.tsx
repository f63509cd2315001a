import type { Schema } from '../../../../../shared/client/api.ts'
import { duration, money, percent } from '../../../base/format.ts'
import { Ago } from '../../../parts/time.tsx'

/** The evaluations of the last year: only numbers, because the differing values are not kept. */
export const PastEvaluations = ({ evaluations }: { evaluations: readonly Schema<'PastEvaluation'>[] }) =>
  evaluations.length === 0 ? null : (
    <section class="stack close" aria-label="Earlier evaluations">
      <h3>Evaluations</h3>
      <div class="card table-wrap">
        <table class="table cards">
          <thead>
            <tr>
              <th>Versions</th>
              <th class="right">Runs</th>
              <th class="right">Pass rate</th>
              <th class="right">Outputs that differ</th>
              <th class="right">Cost</th>
              <th class="right">p50</th>
              <th>By</th>
              <th>When</th>
            </tr>
          </thead>
          <tbody>
            {evaluations.map((each) => (
              <Row key={each.id} evaluation={each} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )

const Row = ({ evaluation }: { evaluation: Schema<'PastEvaluation'> }) => (
  <tr>
    <td>
      v{evaluation.version} against v{evaluation.published_version}
    </td>
    <td class="right number">{evaluation.runs.length}</td>
    <td class="right number">
      {percent(evaluation.published_pass_rate)} → {percent(evaluation.pass_rate)}
    </td>
    <td class="right number">{evaluation.runs.filter(({ difference_count: count }) => count > 0).length}</td>
    <td class="right number">{money(evaluation.cost_usd)}</td>
    <td class="right number">{duration(evaluation.latency_ms_p50)}</td>
    <td>{evaluation.subject}</td>
    <td>
      <Ago at={evaluation.evaluated_at} />
    </td>
  </tr>
)
