import type { Schema } from '../../../../shared/client/api.ts'
import { send } from '../../api/engine.ts'
import { useList } from '../../api/list.ts'
import { tell, tellFailure } from '../../base/announce.ts'
import { DeleteButton } from '../../parts/delete-button.tsx'
import { OpenForm } from '../../parts/folded-form.tsx'
import { Loaded } from '../../parts/loading.tsx'
import { More } from '../../parts/more.tsx'
import { Empty, Notice } from '../../parts/notice.tsx'
import { Ago } from '../../parts/time.tsx'
import { Deliveries } from './deliveries.tsx'
import { NewWebhook } from './new-webhook.tsx'

type Webhook = Schema<'Webhook'>

/** Addresses that get messages about ends and permission requests. */
export function Webhooks() {
  const concerns = ({ event }: { event: string }) => event === 'config.changed'
  const list = useList<Webhook>({ path: '/config/webhooks', field: 'webhooks', concerns })
  return (
    <>
      <Loaded from={list}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty
              title="No webhook yet"
              how={[
                'Name an address of yours, and what it is told: a permission request, or the end of a run or a plan.',
                'Keep the secret that is shown once: with it your program knows that a message is from here.',
                'Send a test. What is not delivered is sent again, up to nine times, and listed here.',
              ]}
              action={<OpenForm name="new-webhook">Add the first webhook</OpenForm>}
            >
              A webhook tells your programs what happens here, such as a request for a permission.
            </Empty>
          ) : (
            <div class="stack">
              {items.map((webhook) => (
                <WebhookCard key={webhook.name} webhook={webhook} onChange={list.reload} />
              ))}
            </div>
          )
        }
      </Loaded>
      <More list={list} />
      <NewWebhook onSaved={list.reload} />
    </>
  )
}

function WebhookCard({ webhook, onChange }: { webhook: Webhook; onChange(): void }) {
  const path = `/config/webhooks/${encodeURIComponent(webhook.name)}`
  const test = () => send('POST', `${path}/test`).then(() => tell('A test message is on its way'), tellFailure)
  return (
    <section class="card padded stack close" aria-label={webhook.name}>
      <div class="row">
        <h2 class="grow">{webhook.name}</h2>
        {!webhook.enabled && <span class="badge">off</span>}
        <button type="button" class="button" onClick={() => void test()}>
          Send a test
        </button>
        <DeleteButton what={`the webhook ${webhook.name}`} path={path} onDeleted={onChange}>
          Nothing is sent to it any more, and what waits for it is given up.
        </DeleteButton>
      </div>
      <p class="soft">{webhook.url}</p>
      <p class="small">{webhook.events.join(', ')}</p>
      {webhook.resting_until !== null && (
        <Notice tone="warn">
          The receiver failed three times in a row: the next message is sent <Ago at={webhook.resting_until} />.
        </Notice>
      )}
      <Deliveries path={path} />
    </section>
  )
}
