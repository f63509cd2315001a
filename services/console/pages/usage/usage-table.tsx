import { money, short } from '../../base/format.ts'
import type { Sum } from './sums.ts'

export const UsageTable = ({ sums }: { sums: readonly Sum[] }) => (
  <div class="card table-wrap">
    <table class="table cards">
      <thead>
        <tr>
          <th>Name</th>
          <th class="right">Share</th>
          <th class="right">Cost</th>
          <th class="right">Tokens in</th>
          <th class="right">Cached</th>
          <th class="right">Written</th>
          <th class="right">Tokens out</th>
          <th class="right">Runs</th>
          <th class="right">Failed</th>
        </tr>
      </thead>
      <tbody>
        {sums.map((sum) => (
          <tr key={sum.key}>
            <td class="whole">{sum.key}</td>
            <td class="right number">{Math.round(sum.share * 100)} %</td>
            <td class="right number">{money(sum.cost_usd)}</td>
            <td class="right number">
              {short(sum.input_tokens)}
              <span class="unit"> in</span>
            </td>
            <td class="right number">
              {sum.input_tokens === 0 ? 0 : Math.round((100 * sum.cache_read_tokens) / sum.input_tokens)} %
              <span class="unit"> cached</span>
            </td>
            <td class="right number">
              {short(sum.cache_write_tokens)}
              <span class="unit"> written</span>
            </td>
            <td class="right number">
              {short(sum.output_tokens)}
              <span class="unit"> out</span>
            </td>
            <td class="right number">
              {short(sum.runs)}
              <span class="unit"> {sum.runs === 1 ? 'run' : 'runs'}</span>
            </td>
            <td class="right number">
              {short(sum.failed)}
              <span class="unit"> failed</span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)
