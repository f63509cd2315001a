import { money, short } from '../../base/format.ts'
import { hrefOf } from '../../base/router.ts'
import { runsOf } from './runs-of.ts'
import { MEASURES, type Measure, type Sum, shown } from './sums.ts'

type TableProps = { by: string; sums: readonly Sum[]; measure: Measure; from: number }

/** The usage of each value of the dimension, the largest first. Each row links to its runs. */
export const UsageTable = ({ by, sums, measure, from }: TableProps) => (
  <div class="card table-wrap">
    <table class="table cards">
      <thead>
        <tr>
          <th>{headOf(by)}</th>
          {HEADS.map((head) => (
            <th key={head} class="right">
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {sums.map((sum) => (
          <tr key={sum.key}>
            <td class="whole">
              <Name {...{ by, sum, measure, from }} />
            </td>
            {cellsOf(sum).map(([text, unit], i) => (
              <td key={HEADS[i]} class={`right number${text === '–' ? ' none' : ''}`}>
                {text}
                {unit && <span class="unit"> {unit}</span>}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)

/** `Model · customer`, or the name of the metadata. */
function headOf(by: string): string {
  const [first = '', name] = by.split('.')
  return name ?? `${first.charAt(0).toUpperCase()}${first.slice(1).replace(',', ' · ')}`
}

const HEADS = [
  ...['Share', 'Cost', 'Tokens in', 'Cached', 'Written'],
  ...['Tokens out', 'Runs', 'Failed', 'p95'],
] as const

/** The cells of a row in the order of `HEADS`. On a phone, where the heads are hidden, `unit` follows the number. */
const cellsOf = (sum: Sum): readonly (readonly [text: string, unit?: string])[] => [
  [sum.share === undefined ? '–' : `${Math.round(sum.share * 100)} %`],
  [money(sum.cost_usd)],
  [short(sum.input_tokens), 'in'],
  [shown('cache', MEASURES.cache.of(sum)), 'cached'],
  [short(sum.cache_write_tokens), 'written'],
  [short(sum.output_tokens), 'out'],
  [short(sum.runs), sum.runs === 1 ? 'run' : 'runs'],
  [short(sum.failed), 'failed'],
  [shown('p95', MEASURES.p95.of(sum)), 'p95'],
]

function Name({ by, sum, measure, from }: Omit<TableProps, 'sums'> & { sum: Sum }) {
  const value = MEASURES[measure].of(sum)
  const runs = runsOf({ by, values: sum.values, measure, value, span: { from } })
  return runs ? <a href={hrefOf('/activity', runs)}>{sum.name}</a> : <span>{sum.name}</span>
}
