import type { Schema } from '../../../../shared/client/api.ts'
import { may } from '../../api/caller.ts'
import { transport } from '../../api/engine.ts'
import { useList } from '../../api/list.ts'
import { tell, tellFailure } from '../../base/announce.ts'
import { shortId } from '../../base/format.ts'
import { hrefOf } from '../../base/router.ts'
import { Loaded } from '../../parts/loading.tsx'
import { More } from '../../parts/more.tsx'
import { Empty } from '../../parts/notice.tsx'
import { Ago } from '../../parts/time.tsx'

type Remembered = Schema<'RememberedPermission'>

/** The tools that need no permission for the rest of a session, until a person withdraws this. */
export function RememberedList() {
  const query = { state: 'remembered' }
  const concerns = ({ event }: { event: string }) => event === 'permission.resolved'
  const list = useList<Remembered>({ path: '/permissions', field: 'permissions', query, concerns })
  const revoke = async ({ session_id, tool_name }: Remembered) => {
    const taken = transport().json('DELETE', '/permissions/remembered', { query: { session_id, tool_name } })
    await taken.then(() => tell(`${tool_name} asks again`), tellFailure)
    list.reload()
  }
  return (
    <>
      <Loaded from={list}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="Every tool asks">
              A tool that you allow for a session is listed here, and can be made to ask again.
            </Empty>
          ) : (
            <div class="card table-wrap">
              <RememberedTable items={items} onRevoke={(item) => void revoke(item)} />
            </div>
          )
        }
      </Loaded>
      <More list={list} />
    </>
  )
}

const RememberedTable = ({ items, onRevoke }: { items: readonly Remembered[]; onRevoke(item: Remembered): void }) => (
  <table class="table cards">
    <thead>
      <tr>
        <th>Tool</th>
        <th>Session</th>
        <th>Since</th>
        <th>
          <span class="visually-hidden">Actions</span>
        </th>
      </tr>
    </thead>
    <tbody>
      {items.map((item) => (
        <tr key={`${item.session_id} ${item.tool_name}`}>
          <td>
            <strong>{item.tool_name}</strong>
          </td>
          <td>
            <a href={hrefOf(`/chat/${encodeURIComponent(item.session_id)}`)}>{shortId(item.session_id)}</a>
          </td>
          <td>
            <Ago at={item.remembered_at} />
          </td>
          <td class="right">
            {may('approve') && (
              <button type="button" class="button" onClick={() => onRevoke(item)}>
                Let {item.tool_name} ask again
              </button>
            )}
          </td>
        </tr>
      ))}
    </tbody>
  </table>
)
