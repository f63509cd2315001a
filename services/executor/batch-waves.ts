import { newsOf } from '../../shared/agent/providers/batch/pool/news.ts'
import { type CallPool, LAST_SHARE, LIVE_SHARE } from '../../shared/agent/providers/batch/pool/pool.ts'
import { nameOf, type Wave } from '../../shared/agent/providers/batch/pool/store.ts'
import type { BatchAnswer, BatchCall, VendorBatches } from '../../shared/agent/providers/batch/port.ts'
import type { ToolBox } from '../../shared/agent/tools/port.ts'
import { mayWait } from '../../shared/agent/tools/recorded-calls.ts'
import { createKeyedQueue } from '../../shared/kernel/async/keyed-queue.ts'
import { inSlices } from '../../shared/kernel/async/slices.ts'
import { hasKind } from '../../shared/kernel/errors.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { SchemaCheckers } from '../../shared/platform/schemas/port.ts'
import { answersUntil, type Batch, executionOf, type NewChunk } from '../../shared/work/flows/batch/batch.ts'
import { checkInput } from '../../shared/work/flows/calls/start-execution.ts'
import type { Dispatches, Flow } from '../../shared/work/flows/port.ts'
import type { FlowJobs } from './flow-jobs.ts'
import { KeptCalls, type KeptCallsDeps } from './kept-calls.ts'

export type WavesDeps = Omit<KeptCallsDeps, 'pooled'> & {
  pool: CallPool
  dispatches: Pick<Dispatches, 'get'>
  checkers: SchemaCheckers
  flows: Pick<FlowJobs, 'rehearse'>
  /** `undefined` for an instance that has no batch endpoints or was deleted. */
  openVendor(tenant: TenantId, instance: string): Promise<VendorBatches | undefined>
  /** The tools that need no permission. */
  toolBox: Pick<ToolBox, 'find'>
  now: () => Date
  log: Log
}

/** `definition`: `undefined` when the flow was deleted meanwhile. `unbegun`: the places of items, where they are known. `leaving` is aborted when this process is to begin nothing more. */
export type ChunkOfBatch = {
  batch: Pick<Batch, 'flow' | 'model' | 'vendor_instance' | 'status' | 'created_at' | 'deadline_at'>
  chunk: NewChunk
  definition: Flow['definition'] | undefined
  unbegun?: ReadonlySet<number>
  leaving?: AbortSignal
}

/**
 * `waiting`: the positions of items whose next calls have no answer yet; `unbegun`: the positions of items that have
 * certainly not begun. `lookAtMs`: when to ask the vendor again.
 */
export type Advanced = {
  answers: ReadonlyMap<string, BatchAnswer>
  waiting: ReadonlySet<number>
  unbegun: ReadonlySet<number>
  lookAtMs: number
}

const NO_ITEMS: ReadonlySet<number> = new Set()
const ALL_READY = { waiting: NO_ITEMS, unbegun: NO_ITEMS, lookAtMs: 0 }
/** How long an item waits if its tool does not answer, or if another process calls the tool. */
const HELD_UP_MS = 10_000
/** How many items are read or rehearsed at the same time. A rehearsal mostly waits for agents that run in parallel. */
const AT_ONCE = 16

/**
 * Sends the model calls of a chunk's items through the pool of their tenant (D58), one wave after the other (D55.6a). Each item is rehearsed with the
 * answers so far, which shows its next calls; if there are none, the item is ready to be executed with these answers.
 */
export class BatchWaves {
  readonly #deps: WavesDeps
  /**
   * Only one chunk of a tenant is rehearsed at a time, because a rehearsal takes CPU. So the first chunks reach the
   * pool early, even if this process then dies.
   */
  readonly #rehearsals = createKeyedQueue()
  readonly #keptCalls: KeptCalls

  constructor(deps: WavesDeps) {
    this.#deps = deps
    this.#keptCalls = new KeptCalls({ ...deps, pooled: deps.pool.store })
  }

  /** Advances a chunk until all its items must wait. Throws `unavailable` when the store is away. */
  async advance(tenant: TenantId, of: ChunkOfBatch): Promise<Advanced> {
    const { pool, openVendor, now } = this.#deps
    const { batch, chunk, definition } = of
    const vendor = batch.vendor_instance === null ? undefined : await openVendor(tenant, batch.vendor_instance)
    const leftMs = Date.parse(batch.deadline_at) - now().getTime()
    const [left, isLast] = [leftMs / spanOf(batch), leftMs / spanOf(batch) < LAST_SHARE]
    const goesLive = definition && toolsOf(definition).some((name) => this.#find(name)?.mayWait === false)
    if (!vendor || !definition || left < LIVE_SHARE || batch.status !== 'running' || goesLive) {
      await this.#withdraw(tenant, { chunk, vendor })
      return { answers: await pool.store.answers(tenant, chunk), ...ALL_READY }
    }
    const unbegun = of.unbegun ?? new Set(await this.#unbegun(tenant, chunk))
    const later = (answers: Map<string, BatchAnswer>, lookAtMs: number) => ({
      ...{ answers, waiting: unbegun, unbegun, lookAtMs },
    })
    for (;;) {
      const waves = await pool.store.waves(tenant, chunk)
      const open = await this.#lookAll(tenant, waves, { of, vendor, isLast })
      const answers = await pool.store.answers(tenant, chunk)
      if (open.length > 0) return later(answers, Math.min(...open.map((wave) => pool.nextLook(wave))))
      const rehearse = () => this.#rehearse(tenant, { ...of, definition }, { answers, unbegun })
      const { calls, isHeldUp } = isLast ? NOTHING : await this.#inTurn(tenant, definition, rehearse)
      if (isHeldUp) return later(answers, now().getTime() + HELD_UP_MS)
      if (calls.length === 0) return { answers, ...ALL_READY, unbegun }
      await pool.add(tenant, chunk, { calls, number: 1 + (waves.at(-1)?.wave ?? -1), ...termsOf(batch) })
    }
  }

  /** The waves that wait. */
  async #lookAll(tenant: TenantId, waves: readonly Wave[], looking: Looking): Promise<Wave[]> {
    const { pool } = this.#deps
    const look = (wave: Wave) => (isOfItsOwn(wave) ? this.#lookAtOld(tenant, wave, looking) : pool.look(tenant, wave))
    const open = waves.filter(({ state }) => state !== 'answered')
    return (await Promise.all(open.map(look))).filter((wave) => wave !== undefined)
  }

  /**
   * An earlier version has sent this wave as a batch of its own. Its answers are kept; the items that the vendor did
   * not receive are rehearsed again and put into the pool.
   */
  async #lookAtOld(tenant: TenantId, wave: Wave, { of, vendor, isLast }: Looking): Promise<Wave | undefined> {
    const { pool, now, log } = this.#deps
    if (isLast) await cancel(vendor, wave)
    const news = await newsOf(submissionOf(wave), { vendor, nowMs: now().getTime(), log })
    if (news === 'waits') return wave
    if (news === 'lost' || news === 'no_room') await pool.store.removeWave(tenant, wave)
    else if ('found' in news) {
      await pool.store.changeWave(tenant, wave, { state: 'submitted', vendor_id: news.found })
      return wave
    } else await pool.keep(tenant, { ...wave, ...termsOf(of.batch) }, news.answers)
    return undefined
  }

  /** Nobody waits for the calls of a chunk any more. */
  async #withdraw(tenant: TenantId, { chunk, vendor }: { chunk: NewChunk; vendor: VendorBatches | undefined }) {
    const { pool } = this.#deps
    const open = (await pool.store.waves(tenant, chunk)).filter(({ state }) => state !== 'answered')
    for (const wave of open)
      if (!isOfItsOwn(wave)) await pool.withdraw(tenant, wave)
      else if (vendor) await cancel(vendor, wave)
  }

  /** `undefined` for a tool whose server does not answer. */
  #find(name: string): { mayWait: boolean } | undefined {
    const tool = this.#deps.toolBox.find(name)
    return tool && { mayWait: mayWait(tool) }
  }

  /** Tool calls take time but no CPU, so the tools of several chunks are called at the same time. */
  #inTurn(tenant: TenantId, definition: Flow['definition'], rehearse: () => Promise<Rehearsed>): Promise<Rehearsed> {
    return toolsOf(definition).length > 0 ? rehearse() : this.#rehearsals.run(tenant, rehearse)
  }

  /** The next calls of the items that have not begun. */
  async #rehearse(
    tenant: TenantId,
    of: Known,
    { answers, unbegun }: { answers: Map<string, BatchAnswer>; unbegun: ReadonlySet<number> },
  ): Promise<Rehearsed> {
    let isHeldUp = toolsOf(of.definition).some((name) => !this.#find(name))
    if (isHeldUp) return { calls: [], isHeldUp }
    const found = await inSlices([...unbegun], AT_ONCE, async (i) => {
      const next = of.leaving?.aborted ? undefined : await this.#rehearseItem(tenant, of, { i, answers })
      isHeldUp ||= next === undefined
      return next ?? []
    })
    const calls = found.flat()
    return { calls, isHeldUp: isHeldUp && (calls.length === 0 || of.leaving?.aborted === true) }
  }

  async #rehearseItem(
    tenant: TenantId,
    { batch, chunk, definition }: Known,
    { i, answers }: { i: number; answers: Map<string, BatchAnswer> },
  ): Promise<BatchCall[] | undefined> {
    const { flows, checkers } = this.#deps
    const { flow, model, vendor_instance } = batch
    const { input } = chunk.items[i] ?? { input: {} }
    const isFine = await checkInput(definition, { input }, checkers.of(tenant)).then(
      () => true,
      (cause: unknown) => {
        if (!hasKind(cause, 'invalid_request')) throw cause
        return false
      },
    )
    if (!isFine) return []
    const item = { traceId: executionOf(chunk.batch_id, chunk.first + i), answers }
    // A failure of the vendor's batch is no reason to call another provider.
    const call = { flow, route: { instance: vendor_instance ?? '', model }, fallback: null }
    return flows.rehearse(tenant, {
      ...call,
      item,
      input,
      keeper: this.#keptCalls.of(tenant, { expires_at: answersUntil(batch) }, { chunk, answers }),
    })
  }

  /** The places of the items that have not begun. */
  async #unbegun(tenant: TenantId, { batch_id, first, ends }: NewChunk): Promise<number[]> {
    const open = [...ends.keys()].filter((i) => ends[i] === null)
    const hasBegun = await inSlices(open, AT_ONCE, async (i) => {
      return (await this.#deps.dispatches.get(tenant, executionOf(batch_id, first + i))) !== undefined
    })
    return open.filter((_, at) => !hasBegun[at])
  }
}

type Known = ChunkOfBatch & { definition: Flow['definition'] }
/** `isHeldUp`: an item has no calls yet, and is not ready. */
type Rehearsed = { calls: readonly BatchCall[]; isHeldUp: boolean }

const NOTHING: Rehearsed = { calls: [], isHeldUp: false }

const toolsOf = ({ tools, sub_agents: agents }: Flow['definition']): string[] =>
  [tools, ...agents.map((each) => each.tools)].flat()

const isOfItsOwn = ({ state }: Wave): boolean => state === 'submitting' || state === 'submitted'

/** The vendor may also have a wave whose submission got no answer. */
async function cancel(vendor: VendorBatches, wave: Wave): Promise<void> {
  const { vendor_id: id } = wave
  try {
    const found = id === null ? await vendor.find(submissionOf(wave)) : { id }
    if (found && found !== 'unsure') await vendor.cancel(found.id)
  } catch {} // It has ended, or will.
}

const submissionOf = (wave: Wave) => ({
  ...wave,
  mark: nameOf(wave),
  count: wave.calls.length,
  first: wave.calls[0] ?? '',
})

type Looking = { of: ChunkOfBatch; vendor: VendorBatches; isLast: boolean }

const spanOf = ({ created_at, deadline_at }: ChunkOfBatch['batch']): number =>
  Date.parse(deadline_at) - Date.parse(created_at)

const termsOf = (batch: ChunkOfBatch['batch']) => ({
  instance: batch.vendor_instance ?? '',
  until_ms: Date.parse(batch.deadline_at) - LAST_SHARE * spanOf(batch),
  expires_ms: Date.parse(answersUntil(batch)),
})
