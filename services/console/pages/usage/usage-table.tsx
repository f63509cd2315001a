import { money, short } from '../../base/format.ts'
import type { Sum } from './sums.ts'

export const UsageTable = ({ sums }: { sums: readonly Sum[] }) => (
  <div class="card table-wrap">
    <table class="table">
      <thead>
        <tr>
          <th>Name</th>
          <th class="right">Share</th>
          <th class="right">Cost</th>
          <th class="right">Tokens in</th>
          <th class="right">Tokens out</th>
          <th class="right">Runs</th>
          <th class="right">Failed</th>
        </tr>
      </thead>
      <tbody>
        {sums.map((sum) => (
          <tr key={sum.key}>
            <td>{sum.key}</td>
            <td class="right number">{Math.round(sum.share * 100)} %</td>
            <td class="right number">{money(sum.cost_usd)}</td>
            <td class="right number">{short(sum.input_tokens)}</td>
            <td class="right number">{short(sum.output_tokens)}</td>
            <td class="right number">{short(sum.runs)}</td>
            <td class="right number">{short(sum.failed)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)
