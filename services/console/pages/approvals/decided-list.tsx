import { useKept } from '../../api/kept-list.ts'
import { useList } from '../../api/list.ts'
import { hrefOf } from '../../base/router.ts'
import type { Decided } from '../../parts/ask/reply.ts'
import { Loaded } from '../../parts/loading.tsx'
import { More } from '../../parts/more.tsx'
import { Empty } from '../../parts/notice.tsx'
import { Ago } from '../../parts/time.tsx'
import { DecisionBadge } from './outcome.tsx'

/** The decisions, each with its time and its author. */
export function DecidedList() {
  const query = { state: 'decided' }
  const concerns = ({ event }: { event: string }) => event === 'permission.resolved'
  const list = useList<Decided>({ path: '/permissions', field: 'permissions', query, concerns })
  useKept(list.state, '/permissions')
  return (
    <>
      <Loaded from={list}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="Nothing was decided yet">Every answer to a request is listed here, with who gave it.</Empty>
          ) : (
            <div class="card table-wrap">
              <DecidedTable items={items} />
            </div>
          )
        }
      </Loaded>
      <More list={list} />
    </>
  )
}

const DecidedTable = ({ items }: { items: readonly Decided[] }) => (
  <table class="table cards">
    <thead>
      <tr>
        <th>Decision</th>
        <th>Tool</th>
        <th>What</th>
        <th>By</th>
        <th>Reason</th>
        <th>When</th>
      </tr>
    </thead>
    <tbody>
      {items.map((decided) => (
        <tr key={decided.id}>
          <td>
            <DecisionBadge decided={decided} />
          </td>
          <td>
            <a href={hrefOf(`/approvals/${decided.id}`)}>{decided.tool_name}</a>
          </td>
          <td class="whole">
            {decided.message ?? '–'}
            {decided.edited && <span class="soft"> (changed)</span>}
            {decided.remembered && <span class="soft"> (for the session)</span>}
          </td>
          <td>{decided.by ?? '–'}</td>
          <td>{decided.reason || '–'}</td>
          <td>
            <Ago at={decided.decided_at} />
          </td>
        </tr>
      ))}
    </tbody>
  </table>
)
