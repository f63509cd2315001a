import { useSignal } from '@preact/signals'
import type { Schema } from '../../../../shared/client/api.ts'
import { send } from '../../api/engine.ts'
import { useList } from '../../api/list.ts'
import { tell, tellFailure } from '../../base/announce.ts'
import { Loaded } from '../../parts/loading.tsx'
import { More } from '../../parts/more.tsx'
import { StateBadge } from '../../parts/state-badge.tsx'
import { Ago } from '../../parts/time.tsx'

type Delivery = Schema<'WebhookDelivery'>

/** The deliveries of a webhook, read when somebody opens the list. */
export function Deliveries({ path }: { path: string }) {
  const isOpen = useSignal(false)
  return (
    <details onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}>
      <summary class="soft">Messages</summary>
      {isOpen.value && <DeliveryList path={`${path}/deliveries`} />}
    </details>
  )
}

function DeliveryList({ path }: { path: string }) {
  const list = useList<Delivery>({ path, field: 'deliveries', query: { limit: 20 } })
  const retry = async (id: string) => {
    await send('POST', `${path}/${id}/retry`).then(() => tell('It is sent again'), tellFailure)
    list.reload()
  }
  return (
    <>
      <Loaded from={list}>
        {({ items }) => (
          <ul class="deliveries">
            {items.length === 0 && <li class="soft small">Nothing was sent yet.</li>}
            {items.map((delivery) => (
              <li key={delivery.id} class="row small">
                <StateBadge state={delivery.status} />
                <strong>{delivery.type}</strong>
                <Ago at={delivery.created_at} />
                <span class="grow soft cut">
                  {delivery.error ?? (delivery.response_status === null ? '' : `answered ${delivery.response_status}`)}
                </span>
                {delivery.status === 'dead' && (
                  <button type="button" class="button" onClick={() => void retry(delivery.id)}>
                    Send again
                  </button>
                )}
              </li>
            ))}
          </ul>
        )}
      </Loaded>
      <More list={list} />
    </>
  )
}
