import type { CallOwner } from '../../shared/agent/providers/batch/pool/store.ts'
import { hasKind } from '../../shared/kernel/errors.ts'
import { itemTraceId, runIdOf } from '../../shared/kernel/ids.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { Admission } from '../../shared/tenancy/limits/admission.ts'
import {
  type Batch,
  type BatchItem,
  type Chunk,
  chunkJobId,
  chunkOfJob,
  endOf,
  hasEnded,
  type ItemEnd,
  isChunkJob,
  joinEnds,
  type NewChunk,
  NOTHING_USED,
} from '../../shared/work/flows/batch/batch.ts'
import type { BatchStore } from '../../shared/work/flows/batch/store.ts'
import { type StartDeps, startExecution } from '../../shared/work/flows/calls/start-execution.ts'
import type { FlowLibrary } from '../../shared/work/flows/library.ts'
import type { Dispatches, Flow } from '../../shared/work/flows/port.ts'
import { isEnded } from '../../shared/work/flows/transitions.ts'
import type { Job, JobEnd, JobQueue } from '../../shared/work/queue/port.ts'
import type { Runs } from '../../shared/work/runs/runs.ts'
import type { Advanced, BatchWaves } from './batch-waves.ts'
import type { FlowJobs } from './flow-jobs.ts'
import { JobRetry, type Settled } from './job-retry.ts'
import { placeOf, runUnhurried, waitForPlace } from './unhurried-flows.ts'

export type BatchJobsDeps = Omit<StartDeps, 'queue' | 'executors' | 'admission'> & {
  batches: BatchStore
  dispatches: Dispatches
  library: Pick<FlowLibrary, 'definitionOf'>
  admission: Pick<Admission, 'admit' | 'release'>
  /** Executes items as runs of the flow, and ends the runs of dead executors. */
  flows: Pick<FlowJobs, 'handle' | 'answers'>
  /** Left out: all calls go to the live API. */
  waves?: Pick<BatchWaves, 'advance'>
  runs: Pick<Runs, 'get'>
  /** Tells that a batch has ended. */
  tell: TellBatch
  /** Aborted when this process shuts down: chunks go back to the queue. */
  draining: AbortSignal
  log: Log
}

/** How many items of a chunk run at the same time. */
export const ITEMS_AT_ONCE = 8
/** How often ends are stored, and a cancel is looked for. */
const LOOK_EVERY_MS = 1_000

/**
 * The jobs that run the items of batches (D55): each job has some items of one batch and executes them as runs of the flow, a few at a time. An item
 * is claimed in the store, so a chunk that two processes handle runs each of its items once.
 */
export class BatchJobs {
  readonly #deps: BatchJobsDeps
  readonly #retry: JobRetry

  constructor(deps: BatchJobsDeps) {
    this.#deps = deps
    this.#retry = new JobRetry((id, cause) => {
      deps.log.debug('the items of a batch cannot be run at the moment', { job: id, cause })
    })
  }

  /** Resolves when all items of the chunk have ended, or the flow with a deadline has ended, or the job went back to the queue. Never rejects. */
  handle(job: Job, giveWay?: AbortSignal): Promise<JobEnd | undefined> {
    const { draining } = this.#deps
    const leaving = giveWay ? AbortSignal.any([draining, giveWay]) : draining
    return this.#retry.untilEnded(job, (tenant, id) =>
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
    if (!hasEnded({ ends })) return leaving.aborted ? { end: { again: true } } : undefined
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
    const timer = setInterval(() => void look().catch(() => {}), LOOK_EVERY_MS)
    try {
      await work.run()
    } finally {
      clearInterval(timer)
    }
    const isParked = advanced !== undefined && advanced.waiting.size > 0 && !leaving.aborted
    return { ends: await save(isParked ? advanced.lookAtMs : 0), isParked }
  }
}

type Work = { batch: Batch; chunk: NewChunk; leaving: AbortSignal }
type Starting = { item: BatchItem; definition: Flow['definition'] }
type Parts = Work & {
  deps: BatchJobsDeps
  definition: Flow['definition'] | undefined
  advanced: Advanced | undefined
}

/** The items of a chunk while this process runs them. */
class ChunkWork {
  ends: NewChunk['ends']
  readonly #tenant: TenantId
  readonly #parts: Parts
  readonly #stopped = new AbortController()
  /** The executions under way. */
  readonly #atWork = new Set<string>()
  /** The last item that asked for a place: only one item of a chunk waits in the queue at a time, the others wait for that item. */
  #asking: Promise<unknown> = Promise.resolve()

  constructor(tenant: TenantId, parts: Parts) {
    this.#tenant = tenant
    this.#parts = parts
    this.ends = parts.chunk.ends
    if (parts.batch.status !== 'running') this.#stopped.abort()
  }

  /** Begins no further item, and cancels those at work. */
  cancel(): void {
    this.#stopped.abort()
    for (const traceId of this.#atWork) this.#cancelRun(traceId)
  }

  /** Resolves when every item has ended, or no further one may begin. Throws `unavailable` when the store is away. */
  async run(): Promise<void> {
    const { chunk, advanced } = this.#parts
    const open = [...chunk.items.entries()].filter(([i]) => this.ends[i] === null && !advanced?.waiting.has(i))
    const next = open.values()
    const lane = async () => {
      for (const [i, item] of next) {
        const end = await this.#end(chunk.first + i, item)
        if (!end) return
        this.ends = this.ends.with(i, end)
      }
    }
    const lanes = await Promise.allSettled(Array.from({ length: ITEMS_AT_ONCE }, lane))
    for (const each of lanes) if (each.status === 'rejected') throw each.reason
  }

  /** Runs an item, or waits for its end if it was begun before. `undefined`: the item does not begin here. */
  async #end(number: number, item: BatchItem): Promise<ItemEnd | undefined> {
    const { batch, chunk, leaving, deps, definition, advanced } = this.#parts
    const traceId = itemTraceId(batch.batch_id, number)
    const [deadline, signal] = [batch.deadline_at, AbortSignal.any([leaving, this.#stopped.signal])]
    const begun = advanced?.unbegun.has(number - chunk.first)
      ? undefined
      : await deps.dispatches.get(this.#tenant, traceId)
    if (begun) return isEnded(begun) ? endOf(begun) : this.#follow(traceId)
    const isStopped = () => this.#stopped.signal.aborted
    if (!definition && !isStopped()) return ['error', ...NOTHING_USED] // The flow was deleted meanwhile.
    const asked = this.#asking.then(() => waitForPlace(placeOf(this.#tenant, traceId), { deadline, signal }, deps))
    this.#asking = asked.catch(() => {})
    const turn = await asked
    if ((turn !== 'placed' || !definition) && isStopped()) return ['cancelled', ...NOTHING_USED]
    if (turn === 'left' || !definition) return undefined
    if (turn === 'late') return ['expired', ...NOTHING_USED]
    const refusal = await this.#start(traceId, { item, definition })
    if (refusal === undefined) return this.#follow(traceId)
    const refused = await deps.dispatches.get(this.#tenant, traceId)
    if (refused) return isEnded(refused) ? endOf(refused) : this.#follow(traceId)
    if (hasKind(refusal, 'unavailable')) throw refusal
    return ['rejected', ...NOTHING_USED] // It is longer than the store takes.
  }

  async #follow(id: string): Promise<ItemEnd | undefined> {
    const { advanced, deps } = this.#parts
    const { flows, dispatches } = deps
    if (advanced && advanced.answers.size > 0) flows.answers.set(id, advanced.answers)
    this.#atWork.add(id)
    if (this.#stopped.signal.aborted) this.#cancelRun(id)
    await flows.handle({ kind: 'flow', tenant: this.#tenant, id })
    this.#atWork.delete(id)
    flows.answers.delete(id)
    const ended = await dispatches.get(this.#tenant, id)
    return ended && isEnded(ended) ? endOf(ended) : undefined
  }

  /** Stores the execution of an item, and returns the error if it was refused: the item is then stored as `rejected` with this error. */
  async #start(traceId: string, { item, definition }: Starting): Promise<unknown> {
    const { batch, deps } = this.#parts
    const execution = {
      ...({ kind: 'batch', subject: batch.subject, idempotencyKey: batch.batch_id } as const),
      flow: { ...batch.flow, definition },
      request: { ...batch.request, input: item.input, priority: 'batch' as const },
    }
    const place = placeOf(this.#tenant, traceId)
    const admission = { admit: () => undefined, release: () => deps.admission.release(place) }
    const starting = { ...deps, admission, queue: NO_QUEUE, executors: THIS_ONE }
    try {
      await startExecution(this.#tenant, traceId, { execution, deps: starting })
      return undefined
    } catch (cause) {
      admission.release()
      return cause
    }
  }

  #cancelRun(traceId: string): void {
    try {
      this.#parts.deps.runs.get(this.#tenant, runIdOf(traceId)).cancel('cancelled')
    } catch {} // It has not begun here: the next look finds it.
  }
}

/** The process that starts an item executes it, without a job. */
const NO_QUEUE = { add: async () => {} }
const THIS_ONE = { hasAny: () => true, isAlive: async () => true }

/** Queues the chunks for which some answers have arrived. If that fails, `reconcileBatches` does it later. */
export const queueChunks =
  (queue: Pick<JobQueue, 'add'>) =>
  async (tenant: TenantId, waves: readonly CallOwner[]): Promise<void> => {
    const ids = new Set(waves.map(({ batch_id, chunk }) => chunkJobId(batch_id, chunk)))
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
      if (!batch) continue // It is being created.
      const nowMs = batch.status === 'running' ? now().getTime() : Number.POSITIVE_INFINITY
      const isDue = (chunk: Chunk) => !hasEnded(chunk) && (chunk.look_at_ms ?? 0) <= nowMs
      const due = (await batches.chunks(tenant, id)).filter(isDue).map(({ chunk }) => chunkJobId(id, chunk))
      const missing = due.length > 0 ? await queue.missing('batch', due) : []
      for (const job of missing) await queue.add({ kind: 'batch', tenant, id: job })
    }
  }
}
