import { useSignal } from '@preact/signals'
import type { Schema, TenantEvent } from '../../../../../shared/client/api.ts'
import { may } from '../../../api/caller.ts'
import { download } from '../../../api/download.ts'
import { send } from '../../../api/engine.ts'
import { useList } from '../../../api/list.ts'
import { tell, tellFailure } from '../../../base/announce.ts'
import { money, shortId } from '../../../base/format.ts'
import { isObject } from '../../../base/json-value.ts'
import { hrefOf } from '../../../base/router.ts'
import { Confirm } from '../../../parts/confirm.tsx'
import { Loaded } from '../../../parts/loading.tsx'
import { More } from '../../../parts/more.tsx'
import { Empty } from '../../../parts/notice.tsx'
import { Progress, type ProgressParts } from '../../../parts/plan-progress.tsx'
import { StateBadge } from '../../../parts/state-badge.tsx'
import { Ago, Took } from '../../../parts/time.tsx'
import { placeOf } from '../flow.ts'

type Batch = Schema<'FlowBatch'>

/** What the batches of a flow have come to. */
export function Batches({ name }: { name: string }) {
  const list = useList<Batch>({ path: '/batches', field: 'batches', query: { flow: name }, concerns })
  return (
    <>
      <Loaded from={list}>
        {({ items }) =>
          items.length === 0 ? <NoBatches name={name} /> : <BatchTable batches={items} onChange={list.reload} />
        }
      </Loaded>
      <More list={list} />
    </>
  )
}

/** The ends of items are stored each second. */
const STORED_MS = 1_500

function concerns({ event, data }: TenantEvent): boolean | number {
  const { metadata } = data as { metadata?: unknown }
  const isItem = event === 'run.ended' && isObject(metadata) && 'batch_id' in metadata
  return isItem ? STORED_MS : event === 'batch.ended'
}

const NoBatches = ({ name }: { name: string }) => (
  <Empty
    title="No batch yet"
    how={[
      'Open Run many inputs in the view Run: write one a line, or choose a file of up to 10,000.',
      'Start the batch: its items run behind all other work, and each fails alone.',
      'Come back for its results. With a deadline of an hour or more they may cost half.',
    ]}
    action={
      may('run') && (
        <a class="button main" href={placeOf(name, 'run')}>
          Run many inputs
        </a>
      )
    }
  >
    A batch runs this flow for many inputs, without haste.
  </Empty>
)

type BatchTableProps = { batches: readonly Batch[]; onChange(): void }

const BatchTable = ({ batches, onChange }: BatchTableProps) => (
  <div class="card table-wrap">
    <table class="table cards">
      <thead>
        <tr>
          <th>State</th>
          <th>Batch</th>
          <th>Items</th>
          <th class="right">Cost</th>
          <th class="right">Took</th>
          <th>Deadline</th>
          <th>
            <span class="visually-hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {batches.map((batch) => (
          <BatchRow key={batch.batch_id} batch={batch} onChange={onChange} />
        ))}
      </tbody>
    </table>
  </div>
)

type BatchRowProps = { batch: Batch; onChange(): void }

const BatchRow = ({ batch, onChange }: BatchRowProps) => (
  <tr>
    <td>
      <StateBadge state={batch.status} word={batch.status === 'cancelling' ? 'Being cancelled' : undefined} />
    </td>
    <td class="whole">
      <a
        class="lines"
        href={hrefOf('/activity', { 'metadata.batch_id': batch.batch_id })}
        title="The runs of its items"
      >
        {shortId(batch.batch_id)}
      </a>
      <span class="small soft lines">
        v{batch.flow.version} · {batch.provider_instance} · {batch.model}
      </span>
    </td>
    <td>
      <Progress parts={partsOf(batch.item_counts)} />
    </td>
    <td class="right number">{money(batch.usage.cost_usd)}</td>
    <td class="right">
      <Took from={batch.created_at} to={batch.ended_at} />
    </td>
    <td>
      <Ago at={batch.deadline_at} />
    </td>
    <td>
      <Actions batch={batch} onChange={onChange} />
    </td>
  </tr>
)

const partsOf = ({ total, ended, ...by }: Batch['item_counts']): ProgressParts => [
  ['done', by.ok, 'OK'],
  ['failed', by.error, 'failed'],
  ['failed', by.rejected, 'rejected'],
  ['failed', by.invalid_output, 'with an invalid output'],
  ['skipped', by.cancelled, 'cancelled'],
  ['skipped', by.expired, 'too late'],
  ['pending', total - ended, 'to do'],
]

function Actions({ batch: { batch_id: id, status, item_counts: counts }, onChange }: BatchRowProps) {
  const isAsking = useSignal(false)
  const cancel = async () => {
    await send<Batch>('POST', `/batches/${id}/cancel`)
    isAsking.value = false
    tell('The batch is being cancelled')
    onChange()
  }
  return (
    <div class="row">
      {counts.ended > 0 && (
        <button
          type="button"
          class="button"
          onClick={() => void download(`/batches/${id}/results`, `${id}.jsonl`).catch(tellFailure)}
        >
          Results
        </button>
      )}
      {status === 'running' && may('run') && (
        <button type="button" class="button danger" onClick={() => (isAsking.value = true)}>
          Cancel …
        </button>
      )}
      {isAsking.value && (
        <Confirm
          title="Cancel the batch"
          submit="Cancel its items"
          isDangerous
          onConfirm={cancel}
          onClose={() => (isAsking.value = false)}
        >
          {counts.total - counts.ended} items have not ended. Those at work are ended, and the others do not begin.
          Results that are there stay.
        </Confirm>
      )}
    </div>
  )
}
