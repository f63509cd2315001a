import type { CallOwner } from '../../shared/agent/providers/batch/pool/store.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import {
  type Batch,
  type Chunk,
  chunkJobId,
  chunkOfJob,
  hasEnded,
  isChunkJob,
  joinEnds,
  type NewChunk,
  waitingJobOf,
} from '../../shared/work/flows/batch/batch.ts'
import type { BatchStore } from '../../shared/work/flows/batch/store.ts'
import type { DispatchStore } from '../../shared/work/flows/port.ts'
import type { StoredFlows } from '../../shared/work/flows/stored-flows.ts'
import type { Job, JobEnd, JobQueue } from '../../shared/work/queue/port.ts'
import type { BatchWaves } from './batch-waves.ts'
import { type ChunkDeps, ChunkWork, type Work } from './chunk-work.ts'
import { GIVEN_BACK, retryJobs, type Settled, type UntilEnded } from './job-ends.ts'
import { runUnhurried } from './unhurried-flows.ts'

export type BatchJobsDeps = ChunkDeps & {
  dispatches: Pick<DispatchStore, 'park'>
  batches: BatchStore
  library: Pick<StoredFlows, 'definitionOf'>
  /** Left out: all calls go to the live API. */
  waves?: Pick<BatchWaves, 'advance'>
  /** Tells that a batch has ended. */
  tell: TellBatch
  /** Aborted when this process shuts down: chunks go back to the queue. */
  draining: AbortSignal
  log: Log
}

/** How often ends are stored, and a cancel is looked for. */
const LOOK_EVERY_MS = 1_000

/**
 * The jobs that run the items of batches (D55): each job has some items of one batch and executes them as runs of the flow, a few at a time. An item
 * is claimed in the store, so a chunk that two processes handle runs each of its items once.
 */
export class BatchJobs {
  readonly #deps: BatchJobsDeps
  readonly #untilEnded: UntilEnded

  constructor(deps: BatchJobsDeps) {
    this.#deps = deps
    this.#untilEnded = retryJobs((id, cause) => {
      deps.log.debug('the items of a batch cannot be run at the moment', { job: id, cause })
    })
  }

  /** Resolves when all items of the chunk have ended, or the flow that has time until its deadline, when they wait for a vendor, or when the job was given back. Never rejects. */
  handle(job: Job, giveWay?: AbortSignal): Promise<JobEnd | undefined> {
    const { draining } = this.#deps
    const leaving = giveWay ? AbortSignal.any([draining, giveWay]) : draining
    return this.#untilEnded(job, (tenant, id) =>
      isChunkJob(id) ? this.#settle(tenant, id, leaving) : runUnhurried(tenant, id, { ...this.#deps, leaving }),
    )
  }

  /** The item that made its executors die has ended by then: the other items continue. */
  givenUp(job: Job): Promise<JobEnd | undefined> {
    return this.handle(job)
  }

  async #settle(tenant: TenantId, id: string, leaving: AbortSignal): Promise<Settled> {
    const { batches, now, tell } = this.#deps
    const { batchId, chunk: number } = chunkOfJob(id)
    const batch = await batches.get(tenant, batchId)
    const chunk = batch && (await batches.chunk(tenant, batchId, number))
    if (!chunk) return { end: undefined }
    const ended = { ends: chunk.ends, isParked: false }
    const { ends, isParked } = hasEnded(chunk) ? ended : await this.#run(tenant, { batch, chunk, leaving })
    if (isParked) return { end: undefined } // It is queued again when the vendor may have news (`reconcileBatches`).
    if (!hasEnded({ ends })) return leaving.aborted ? GIVEN_BACK : undefined
    await batches.settle(tenant, batchId, { at: now(), tell })
    return { end: undefined }
  }

  /** Runs the items that have not ended and do not wait for a vendor's batch. Returns the ends that are stored afterwards. */
  async #run(
    tenant: TenantId,
    { batch, chunk, leaving }: Work,
  ): Promise<{ ends: NewChunk['ends']; isParked: boolean }> {
    const { batches, library, waves } = this.#deps
    const definition = await library.definitionOf(tenant, batch.flow)
    const isPooled = batch.vendor_instance !== null
    const advanced = isPooled ? await waves?.advance(tenant, { batch, chunk, definition, leaving }) : undefined
    const work = new ChunkWork(tenant, { batch, chunk, leaving, deps: this.#deps, definition, advanced })
    const save = async (look_at_ms = 0) => {
      const ends = await batches.saveEnds(tenant, { ...chunk, ends: work.ends, look_at_ms })
      return (work.ends = joinEnds(work.ends, ends))
    }
    const look = async () => {
      await save()
      const { status } = (await batches.get(tenant, batch.batch_id)) ?? { status: 'cancelling' }
      if (status !== 'running') work.cancel()
    }
    const timer = setInterval(() => void look().catch(() => {}), LOOK_EVERY_MS).unref()
    try {
      await work.run()
    } finally {
      clearInterval(timer)
    }
    const isParked = advanced !== undefined && advanced.waiting.size > 0 && !leaving.aborted
    return { ends: await save(isParked ? advanced.lookAtMs : 0), isParked }
  }
}

/** Queues the chunks and flows some of whose calls have their answers. Where that fails they are looked at later (`reconcileBatches`, `sweepOrphans`). */
export const queueAnswered =
  (queue: Pick<JobQueue, 'add'>) =>
  async (tenant: TenantId, waves: readonly CallOwner[]): Promise<void> => {
    const ids = new Set(waves.flatMap((wave) => waitingJobOf(wave) ?? []))
    await Promise.allSettled([...ids].map((id) => queue.add({ kind: 'batch', tenant, id })))
  }

type TellBatch = (tenant: TenantId, batch: Batch) => Promise<void>

export type ReconcileDeps = {
  batches: BatchStore
  queue: Pick<JobQueue, 'add' | 'missing'>
  tell: TellBatch
  now: () => Date
}

/**
 * Queues the chunks of batches that have not ended and have lost their jobs, and ends batches whose last process died before it could. Throws `unavailable`
 * when the store or the queue does not answer.
 */
export async function reconcileBatches({ batches, queue, tell, now }: ReconcileDeps): Promise<void> {
  let page = await batches.open(undefined)
  for (; page.length > 0; page = await batches.open(page.at(-1)?.batch_id)) {
    for (const { batch_id: id, owner: tenant } of page) {
      if (await batches.settle(tenant, id, { at: now(), tell })) continue
      const batch = await batches.get(tenant, id)
      if (!batch) continue // The batch may still be being created.
      const nowMs = batch.status === 'running' ? now().getTime() : Number.POSITIVE_INFINITY
      const isDue = (chunk: Chunk) => !hasEnded(chunk) && (chunk.look_at_ms ?? 0) <= nowMs
      const due = (await batches.chunks(tenant, id)).filter(isDue).map(({ chunk }) => chunkJobId(id, chunk))
      const missing = due.length > 0 ? await queue.missing('batch', due) : []
      for (const job of missing) await queue.add({ kind: 'batch', tenant, id: job })
    }
  }
}
