import type { PoolStore } from '../../shared/agent/providers/batch/pool/store.ts'
import type { BatchAnswer } from '../../shared/agent/providers/batch/port.ts'
import { begunOf, type CallKeeper } from '../../shared/agent/tools/recorded-calls.ts'
import type { KnownExecutors } from '../../shared/cluster/members/executors.ts'
import { retryUntil } from '../../shared/kernel/async/retry.ts'
import type { JsonObject } from '../../shared/kernel/events.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { Batch, NewChunk } from '../../shared/work/flows/batch/batch.ts'

export type KeptCallsDeps = {
  pooled: Pick<PoolStore, 'addAnswer' | 'answers'>
  executors: Pick<KnownExecutors, 'isAlive'>
  /** This executor's epoch. */
  epoch(): number
}

/** `answers`: those of the chunk so far, to which the results of tools are added. */
type Keeping = { chunk: NewChunk; answers: Map<string, BatchAnswer> }

/** The status of a kept tool call. */
const KEPT = 1
/** How long, and how often, the result of a tool is sent to a store that does not answer: without the result, the effect of the tool is unknown. */
const KEEP_MS = 60_000
const RETRY_MS = 500

/** Keeps the tool calls of the items of batches, with the answers of their vendors (D55.6b). */
export class KeptCalls {
  readonly #deps: KeptCallsDeps
  /** The calls that this process is at. */
  readonly #atWork = new Set<string>()

  constructor(deps: KeptCallsDeps) {
    this.#deps = deps
  }

  /** Keeps those of the items of a chunk. */
  of(tenant: TenantId, { expires_at }: Pick<Batch, 'expires_at'>, { chunk, answers }: Keeping): CallKeeper {
    const { pooled, epoch, executors } = this.#deps
    const add = (id: string, body: JsonObject) =>
      pooled.addAnswer(tenant, chunk, { call: id, answer: { status: KEPT, body }, expires_ms: Date.parse(expires_at) })
    return {
      begin: async (id) => {
        if (await add(begunOf(id), { executor: epoch() })) {
          this.#atWork.add(id)
          return 'begun'
        }
        const known = await pooled.answers(tenant, chunk)
        const executor = Number(known.get(begunOf(id))?.body['executor'])
        const isAlive = executor === epoch() ? this.#atWork.has(id) : await executors.isAlive(executor)
        return isAlive || known.has(id) ? 'elsewhere' : 'lost'
      },
      end: async (id, outcome) => {
        const body = outcome as unknown as JsonObject
        const until = performance.now() + KEEP_MS
        await retryUntil(() => add(id, body), { pauses: RETRY_MS, until }).finally(() => this.#atWork.delete(id))
        answers.set(id, { status: KEPT, body })
      },
    }
  }
}
