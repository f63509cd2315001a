import type { ComponentChildren } from 'preact'
import type { Schema } from '../../../../../shared/client/api.ts'
import { counted, money, short, shortId } from '../../../base/format.ts'
import { hrefOf } from '../../../base/router.ts'
import { nameOf } from '../../../parts/run-facts.ts'
import { StateBadge } from '../../../parts/state-badge.tsx'
import { Ago, Took } from '../../../parts/time.tsx'

type Run = Schema<'Run'>

export type Column = {
  id: string
  title: string
  width: string
  /** It cannot be left out. */
  isFixed?: boolean
  /** Whether the column is shown by default. */
  isUsual?: boolean
  /** A figure. */
  isRight?: boolean
  /** The text may take more than one line. */
  isWhole?: boolean
  cell(run: Run): ComponentChildren
}

const usual = { isUsual: true } as const
const NAME = 'minmax(110px, 0.7fr)'

/** What the list can show of a run, in its order. */
export const COLUMNS: readonly Column[] = [
  { id: 'state', title: 'State', width: '112px', isFixed: true, cell: ({ status }) => <StateBadge state={status} /> },
  {
    id: 'what',
    title: 'What',
    width: 'minmax(200px, 3fr)',
    isFixed: true,
    isWhole: true,
    cell: (run) => <What run={run} />,
  },
  { id: 'kind', title: 'Kind', width: '88px', ...usual, cell: ({ kind }) => kind },
  { id: 'model', title: 'Model', width: 'minmax(150px, 1fr)', ...usual, cell: ({ model }) => model },
  { id: 'subject', title: 'Started by', width: NAME, ...usual, cell: ({ subject }) => subject },
  { id: 'customer_id', title: 'Customer', width: NAME, cell: ({ customer_id: id }) => id },
  {
    id: 'session_id',
    title: 'Session',
    width: '140px',
    cell: ({ session_id: id }) => id && <code>{shortId(id)}</code>,
  },
  { id: 'metadata', title: 'Metadata', width: 'minmax(120px, 1fr)', cell: ({ metadata = {} }) => pairsOf(metadata) },
  { id: 'turns', title: 'Turns', width: '76px', isRight: true, cell: ({ turns }) => turns },
  { id: 'tool_calls', title: 'Tool calls', width: '92px', isRight: true, cell: ({ tool_calls: calls }) => calls },
  {
    ...{ id: 'tokens', title: 'Tokens', width: '76px', ...usual, isRight: true },
    cell: ({ input_tokens: input, output_tokens: output = 0 }) =>
      input !== undefined && (
        <>
          {short(input + output)}
          <span class="unit"> tokens</span>
        </>
      ),
  },
  {
    ...{ id: 'cost', title: 'Cost', width: '90px', ...usual, isRight: true },
    cell: ({ cost_usd: cost }) => cost !== undefined && money(cost),
  },
  {
    ...{ id: 'took', title: 'Took', width: '104px', ...usual, isRight: true },
    cell: ({ started_at: from, ended_at: to }) => <Took from={from} to={to} />,
  },
  { id: 'started', title: 'Started', width: '104px', ...usual, cell: ({ started_at: at }) => <Ago at={at} /> },
]

const What = ({ run }: { run: Run }) => (
  <>
    <a class="lines" href={hrefOf(`/activity/${run.run_id}`)}>
      {nameOf(run)}
    </a>
    {run.code !== undefined && run.code !== 'ok' && <code class="soft"> {run.code}</code>}
  </>
)

const pairsOf = (metadata: Readonly<Record<string, string>>): string | undefined =>
  Object.entries(metadata)
    .map(([name, value]) => `${name}=${value}`)
    .join(', ') || undefined

/** The shown columns: the saved choice, or the default columns. */
export const columnsOf = (kept: readonly string[] | undefined): readonly Column[] =>
  COLUMNS.filter(({ id, isFixed, isUsual = false }) => isFixed || (kept?.includes(id) ?? isUsual))

/** `3 new runs`, or `50+ new runs` where more than a page came. */
export const newsText = (count: number, isMore: boolean): string =>
  counted(count, 'new run').replace(' ', isMore ? '+ ' : ' ')
