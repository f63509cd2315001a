import type { Schema } from '../../../../shared/client/api.ts'
import { useList } from '../../api/list.ts'
import { Json } from '../../parts/json.tsx'
import { Loaded } from '../../parts/loading.tsx'
import { More } from '../../parts/more.tsx'
import { Empty } from '../../parts/notice.tsx'
import { Ago } from '../../parts/time.tsx'

type Change = Schema<'ConfigChange'>

/** The changes of the settings, with author and time. Keys are masked. */
export function Changes() {
  const concerns = ({ event }: { event: string }) => event === 'config.changed'
  const list = useList<Change>({ path: '/config/changes', field: 'changes', concerns })
  return (
    <>
      <Loaded from={list}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="Nothing was changed yet">
              Every change of providers, routing, limits and webhooks is listed here, with who made it.
            </Empty>
          ) : (
            <ul class="card">
              {items.map((change) => (
                <ChangeRow key={change.id} change={change} />
              ))}
            </ul>
          )
        }
      </Loaded>
      <More list={list} />
    </>
  )
}

const ChangeRow = ({ change }: { change: Change }) => (
  <li class="change">
    <div class="stack close">
      {change.changes.map(({ part, name, from, to }) => (
        <details key={`${part} ${name}`}>
          <summary>
            {part} {name} {from === null ? 'was created' : to === null ? 'was deleted' : 'was changed'}
          </summary>
          <div class="before-after">
            <Json value={from} />
            <Json value={to} />
          </div>
        </details>
      ))}
    </div>
    <span class="row small soft">
      {change.subject}
      <Ago at={change.at} />
    </span>
  </li>
)
