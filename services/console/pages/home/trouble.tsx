import type { Schema, TenantEvent } from '../../../../shared/client/api.ts'
import { has, may } from '../../api/caller.ts'
import { get } from '../../api/engine.ts'
import { useResource } from '../../api/resource.ts'
import { serverNow } from '../../base/clock.ts'
import { counted, moment } from '../../base/format.ts'
import { hrefOf } from '../../base/router.ts'
import { Line } from '../../parts/foreign.tsx'
import { Notice } from '../../parts/notice.tsx'
import { causeOf } from '../../parts/run/causes.ts'
import { lasting, type Trouble } from './failures.ts'

/** Names a provider at which runs are failing: since when, and how many. */
export function TroubleBanner({ trouble }: { trouble: Trouble }) {
  const { model } = trouble
  const load = () => get<Schema<'ListRunsResponse'>>('/runs', { status: 'done', model: model || undefined, limit: 1 })
  const concerns = ({ event, data }: TenantEvent) => event === 'run.ended' && data['status'] === 'done'
  const well = useResource(model, load, concerns).state.value.data
  const now = well && lasting(trouble, well.runs[0])
  if (!now) return null
  const { code, since, count } = now
  const isLimit = code === 'provider_rate_limited'
  const canSet = may('admin') && has('config')
  return (
    <Notice tone="bad">
      <div class="row trouble">
        <span class="grow">
          <strong>{causeOf(code).text}</strong>
          {model !== '' && (
            <>
              {' '}
              (<Line text={model} />)
            </>
          )}
          : {counted(count, 'run')} failed since {minute(since)}, and none has ended well.
          {isLimit && canSet && <Room model={model} />}
        </span>
        <a class="button" href={hrefOf('/activity', { status: 'failed', code, span: '24h' })}>
          Open the runs
        </a>
        {canSet && (
          <a class="button" href={hrefOf('/settings')}>
            Open Settings
          </a>
        )}
      </div>
    </Notice>
  )
}

/** A time of today without its seconds. */
const minute = (at: string) => moment(`${at.slice(0, 16)}:00.000Z`, new Date(serverNow()).toISOString())

/** Instances that are asked how much room the provider leaves. */
const MOST_INSTANCES = 10

/** The used rate limits at the provider (D52.4) of the instances that call the model. */
function Room({ model }: { model: string }) {
  const load = async () => {
    const { instances } = await get<Schema<'InstanceList'>>('/config/instances', { limit: MOST_INSTANCES })
    const answers = instances.map(({ name }) =>
      get<Schema<'Capabilities'>>(`/config/instances/${encodeURIComponent(name)}/capabilities`),
    )
    return (await Promise.all(answers)).flatMap(({ room }) => room.filter((each) => each.model === model))
  }
  const rooms = useResource(model, load).state.value.data ?? []
  const sum = (field: 'refused' | 'waiting') => rooms.reduce((total, room) => total + room[field], 0)
  if (sum('refused') + sum('waiting') === 0) return null
  return (
    <>
      {' '}
      The provider has refused {counted(sum('refused'), 'call')}, and {counted(sum('waiting'), 'call')} wait for a turn.
    </>
  )
}
