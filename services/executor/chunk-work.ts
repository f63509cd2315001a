import { hasKind } from '../../shared/kernel/errors.ts'
import { itemTraceId, runIdOf } from '../../shared/kernel/ids.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { Admission } from '../../shared/tenancy/limits/admission.ts'
import {
  type Batch,
  type BatchItem,
  endOf,
  type ItemEnd,
  type NewChunk,
  NOTHING_USED,
} from '../../shared/work/flows/batch/batch.ts'
import { type StartDeps, startExecution } from '../../shared/work/flows/calls/start-execution.ts'
import type { Dispatches, Flow } from '../../shared/work/flows/port.ts'
import { isEnded } from '../../shared/work/flows/transitions.ts'
import type { Runs } from '../../shared/work/runs/runs.ts'
import type { Advanced } from './batch-waves.ts'
import type { FlowJobs } from './flow-jobs.ts'
import { placeOf, waitForPlace } from './unhurried-flows.ts'

export type ChunkDeps = Omit<StartDeps, 'queue' | 'executors' | 'admission'> & {
  dispatches: Dispatches
  admission: Pick<Admission, 'admit' | 'release'>
  /** Executes items as runs of the flow, and ends the runs of dead executors. */
  flows: Pick<FlowJobs, 'handle' | 'answers'>
  runs: Pick<Runs, 'get'>
}

/** How many items of a chunk run at the same time. */
export const ITEMS_AT_ONCE = 8

export type Work = { batch: Batch; chunk: NewChunk; leaving: AbortSignal }
type Starting = { item: BatchItem; definition: Flow['definition'] }
type Parts = Work & {
  deps: ChunkDeps
  definition: Flow['definition'] | undefined
  advanced: Advanced | undefined
}

/** The items of a chunk while this process runs them. */
export class ChunkWork {
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
