import type { Schema } from '../../../../shared/client/api.ts'
import { useList } from '../../api/list.ts'
import { shortId } from '../../base/format.ts'
import { hrefOf } from '../../base/router.ts'
import { Line } from '../../parts/foreign.tsx'
import { Loaded } from '../../parts/loading.tsx'
import { More } from '../../parts/more.tsx'
import { Empty } from '../../parts/notice.tsx'
import { Countdown } from '../../parts/time.tsx'

type Call = Schema<'PendingToolCall'>

/** The calls that programs must execute: a run waits for the program that started it, and no person can answer here instead. */
export function ClientCalls() {
  const concerns = ({ event }: { event: string }) => event.startsWith('tool_call.')
  const list = useList<Call>({ path: '/tool-calls', field: 'tool_calls', concerns })
  return (
    <>
      <Loaded from={list}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No program has to answer">
              A run that calls a tool of the program which started it waits for that program, and is listed here.
            </Empty>
          ) : (
            <div class="card table-wrap">
              <CallTable items={items} />
            </div>
          )
        }
      </Loaded>
      <More list={list} />
    </>
  )
}

const CallTable = ({ items }: { items: readonly Call[] }) => (
  <table class="table cards">
    <thead>
      <tr>
        <th>Tool</th>
        <th>Run</th>
        <th>Waits for</th>
        <th>Left</th>
      </tr>
    </thead>
    <tbody>
      {items.map(({ run_id, tool_use_id, tool_name, expires_at }) => (
        <tr key={`${run_id} ${tool_use_id}`}>
          <td>
            <strong>
              <Line text={tool_name} />
            </strong>
          </td>
          <td>
            <a href={hrefOf(`/activity/${run_id}`)}>{shortId(run_id)}</a>
          </td>
          <td>the program that started it</td>
          <td>
            <Countdown until={expires_at} />
          </td>
        </tr>
      ))}
    </tbody>
  </table>
)
