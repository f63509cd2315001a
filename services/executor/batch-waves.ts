import {
  type BatchAnswer,
  type BatchCall,
  GOES_LIVE,
  type VendorBatches,
} from '../../shared/agent/providers/batch/port.ts'
import type { ToolBox } from '../../shared/agent/tools/port.ts'
import { mayWait } from '../../shared/agent/tools/recorded-calls.ts'
import { createKeyedQueue } from '../../shared/kernel/async/keyed-queue.ts'
import { hasKind } from '../../shared/kernel/errors.ts'
import { itemTraceId } from '../../shared/kernel/ids.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { SchemaCheckers } from '../../shared/platform/schemas/port.ts'
import { answersUntil, type Batch, markOf, type NewChunk, type Wave } from '../../shared/work/flows/batch/batch.ts'
import type { BatchStore } from '../../shared/work/flows/batch/store.ts'
import { checkInput } from '../../shared/work/flows/calls/choose-routes.ts'
import type { Dispatches, Flow } from '../../shared/work/flows/port.ts'
import type { FlowJobs } from './flow-jobs.ts'
import { KeptCalls, type KeptCallsDeps } from './kept-calls.ts'

export type WavesDeps = KeptCallsDeps & {
  batches: BatchStore
  dispatches: Pick<Dispatches, 'get'>
  checkers: SchemaCheckers
  flows: Pick<FlowJobs, 'rehearse'>
  /** Throws `rate_limit` when the tenant's budget is used up, and `unavailable` where that is not known. */
  assertBudget(tenant: TenantId): Promise<void>
  /** `undefined` for an instance without batch endpoints, or that is gone. */
  openVendor(tenant: TenantId, instance: string): Promise<VendorBatches | undefined>
  /** Those that ask nobody. */
  toolBox: Pick<ToolBox, 'find'>
  now: () => Date
  log: Log
}

/** `definition`: `undefined` when the flow was deleted meanwhile. `leaving` is aborted when this process is to begin nothing more. */
export type ChunkOfBatch = {
  batch: Batch
  chunk: NewChunk
  definition: Flow['definition'] | undefined
  leaving?: AbortSignal
}

/** `waiting`: the places of items whose next calls have no answer yet, `unbegun`: of those that are known not to have begun. `lookAtMs`: when the vendor may have news. */
export type Advanced = {
  answers: ReadonlyMap<string, BatchAnswer>
  waiting: ReadonlySet<number>
  unbegun: ReadonlySet<number>
  lookAtMs: number
}

const NO_ITEMS: ReadonlySet<number> = new Set()
const ALL_READY = { waiting: NO_ITEMS, unbegun: NO_ITEMS, lookAtMs: 0 }
/** How long the process that submits a wave has for it. */
const SUBMIT_MS = 90_000
/** A batch that the vendor does not know so long after it was submitted is not known to it any more. */
const GONE_MS = 600_000
/** The items that are read or rehearsed at a time. A rehearsal is mostly a wait for agents that run side by side. */
const AT_ONCE = 16
/** The pauses between two looks at a vendor: a part of how long the wave has been there. */
const PAUSE = { least: 10_000, most: 300_000, share: 0.05 }
/** The last parts of the time until the deadline: in the first one no call waits for a vendor, and from the second on nothing is sent to it and what is there is cancelled. */
const LIVE_SHARE = 0.1
const LAST_SHARE = 0.2
/** Another answer may come of the same call to the live API. */
const isPassing = ({ status }: BatchAnswer): boolean => status === 429 || status >= 500

/**
 * Sends the model calls of a chunk's items through the batches of a vendor, one wave after the other (D55.6a). Each item is rehearsed with the answers so far, which shows its
 * next calls; when it makes none, it is ready to be executed with these answers.
 */
export class BatchWaves {
  readonly #deps: WavesDeps
  /** One chunk of a tenant is rehearsed at a time, which takes CPU: so the first ones are at the vendor soon, whatever becomes of this process then. */
  readonly #rehearsals = createKeyedQueue()
  readonly #keptCalls: KeptCalls

  constructor(deps: WavesDeps) {
    this.#deps = deps
    this.#keptCalls = new KeptCalls(deps)
  }

  /** Takes a chunk as far as it comes without a wait. Throws `unavailable` when the store is away. */
  async advance(tenant: TenantId, of: ChunkOfBatch): Promise<Advanced> {
    const { batches, openVendor, now } = this.#deps
    const { batch, chunk, definition } = of
    const vendor = batch.vendor_instance === null ? undefined : await openVendor(tenant, batch.vendor_instance)
    const left = (Date.parse(batch.deadline_at) - now().getTime()) / spanOf(batch)
    const isLast = left < LAST_SHARE || batch.status !== 'running'
    const waves = await batches.waves(tenant, chunk)
    let wave: Looked = waves.find(({ state }) => state !== 'answered')
    const goesLive = definition && toolsOf(definition).some((name) => this.#find(name)?.mayWait === false)
    if (!vendor || !definition || left < LIVE_SHARE || batch.status !== 'running' || goesLive) {
      if (vendor && wave) await cancel(vendor, wave)
      return { answers: await batches.answers(tenant, chunk), ...ALL_READY }
    }
    const unbegun = new Set(await this.#unbegun(tenant, chunk))
    const later = (answers: Map<string, BatchAnswer>, lookAtMs: number) => ({
      ...{ answers, waiting: unbegun, unbegun, lookAtMs },
    })
    for (let number = 1 + (waves.at(-1)?.wave ?? -1); ; number++) {
      if (wave && wave !== 'refused') wave = await this.#look(tenant, { of, wave, vendor, isLast })
      const answers = await batches.answers(tenant, chunk)
      if (wave) return later(answers, this.#nextLook(wave))
      const rehearse = () => this.#rehearse(tenant, { ...of, definition }, { answers, unbegun })
      const isOver = isLast || (await this.#hasSpentAll(tenant))
      const { calls, isHeldUp } = isOver ? NOTHING : await this.#inTurn(tenant, definition, rehearse)
      if (isHeldUp) return later(answers, now().getTime() + PAUSE.least)
      if (calls.length === 0) return { answers, ...ALL_READY, unbegun }
      wave = await this.#submit(tenant, { of, vendor, calls, number })
    }
  }

  /** Nothing more is sent to a vendor then, where it would be paid: the budget refuses the items as it refuses live runs. */
  #hasSpentAll(tenant: TenantId): Promise<boolean> {
    return this.#deps.assertBudget(tenant).then(
      () => false,
      (cause: unknown) => {
        if (hasKind(cause, 'rate_limit')) return true
        throw cause
      },
    )
  }

  /** Returns the wave while it has no answers; `undefined` when it has, or is not there. */
  async #look(tenant: TenantId, { of, wave, vendor, isLast }: Looking): Promise<Looked> {
    const { batches, now } = this.#deps
    if (wave.state === 'submitting') {
      if (now().getTime() - wave.at_ms < SUBMIT_MS) return wave // Another process may be at it.
      const found = await vendor.find({ ...wave, mark: markOf(wave) }).catch(() => 'unsure' as const)
      if (found === 'unsure') return wave
      if (!found) await batches.removeWave(tenant, wave)
      else await batches.changeWave(tenant, wave, { state: 'submitted', vendor_id: found.id })
      return found && wave
    }
    if (isLast) await cancel(vendor, wave)
    const answers = await vendor.read(wave.vendor_id ?? '').catch((cause: unknown) => this.#unread(wave, cause))
    if (!answers) return wave
    if (answers === 'refused') return this.#sendLater(tenant, wave)
    await this.#keep(tenant, { of, wave, answers })
    return undefined
  }

  /** For a batch that cannot be read: no answers when the vendor does not know it any more, and `undefined` where they may still come. */
  #unread(wave: Wave, cause: unknown): ReadonlyMap<string, BatchAnswer> | undefined {
    const { now, log } = this.#deps
    const isGone = hasKind(cause, 'not_found') && now().getTime() - wave.at_ms > GONE_MS
    log.warn('the batch of a vendor cannot be read', { batch_id: wave.batch_id, is_gone: isGone, cause })
    return isGone ? new Map() : undefined
  }

  /** The vendor has had no room for the wave. */
  async #sendLater(tenant: TenantId, wave: Wave): Promise<'refused'> {
    await this.#deps.batches.removeWave(tenant, wave)
    return 'refused'
  }

  async #keep(tenant: TenantId, { of, wave, answers }: Answered): Promise<void> {
    const { batches } = this.#deps
    const kept = wave.calls.map((call): [string, BatchAnswer] => {
      const answer = answers.get(call)
      return [call, answer && !isPassing(answer) ? answer : GOES_LIVE]
    })
    await batches.addAnswers(tenant, of.chunk, { answers: new Map(kept), expires_at: answersUntil(of.batch) })
    await batches.changeWave(tenant, wave, { state: 'answered' })
  }

  /** `undefined` for a tool whose server is away. */
  #find(name: string): { mayWait: boolean } | undefined {
    const tool = this.#deps.toolBox.find(name)
    return tool && { mayWait: mayWait(tool) }
  }

  /** Tools take their time, and no CPU: those of several chunks are called at the same time. */
  #inTurn(tenant: TenantId, definition: Flow['definition'], rehearse: () => Promise<Rehearsed>): Promise<Rehearsed> {
    return toolsOf(definition).length > 0 ? rehearse() : this.#rehearsals.run(tenant, rehearse)
  }

  /** The next calls of the items that have not begun. All of a wave are of one model. */
  async #rehearse(
    tenant: TenantId,
    of: Known,
    { answers, unbegun }: { answers: Map<string, BatchAnswer>; unbegun: ReadonlySet<number> },
  ): Promise<Rehearsed> {
    let isHeldUp = toolsOf(of.definition).some((name) => !this.#find(name))
    if (isHeldUp) return { calls: [], isHeldUp }
    const calls = await inSlices([...unbegun], async (i) => {
      const found = of.leaving?.aborted ? undefined : await this.#rehearseItem(tenant, of, { i, answers })
      isHeldUp ||= found === undefined
      return found ?? []
    })
    const [first] = calls
    const wave = calls.filter(({ path, body }) => path === first?.path && body['model'] === first.body['model'])
    return { calls: wave, isHeldUp: isHeldUp && (wave.length === 0 || of.leaving?.aborted === true) }
  }

  async #rehearseItem(
    tenant: TenantId,
    { batch, chunk, definition }: Known,
    { i, answers }: { i: number; answers: Map<string, BatchAnswer> },
  ): Promise<BatchCall[] | undefined> {
    const { flows, checkers } = this.#deps
    const { batch_id, flow, model, vendor_instance } = batch
    const { input } = chunk.items[i] ?? { input: {} }
    const isFine = await checkInput(definition, { input }, checkers.of(tenant)).then(
      () => true,
      (cause: unknown) => {
        if (!hasKind(cause, 'invalid_request')) throw cause
        return false
      },
    )
    if (!isFine) return []
    const item = { traceId: itemTraceId(batch_id, chunk.first + i), answers }
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
    const hasBegun = (i: number) => this.#deps.dispatches.get(tenant, itemTraceId(batch_id, first + i))
    return inSlices(open, async (i) => ((await hasBegun(i)) ? [] : [i]))
  }

  /** The wave is stored before it is sent, so that it is sent by one process, and looked for at the vendor by the next. */
  async #submit(tenant: TenantId, { of, vendor, calls, number }: Submitting): Promise<Looked> {
    const { batches, now, log } = this.#deps
    const { batch_id, chunk } = of.chunk
    const ids = calls.map(({ id }) => id)
    const key = { batch_id, chunk, wave: number }
    const wave: Wave = { ...key, state: 'submitting', vendor_id: null, at_ms: now().getTime(), calls: ids }
    if (!(await batches.addWave(tenant, wave, of.batch))) return wave
    try {
      const sent = { state: 'submitted', vendor_id: await vendor.submit(calls, markOf(wave)) } as const
      await batches.changeWave(tenant, wave, sent)
      return { ...wave, ...sent }
    } catch (cause) {
      log.warn('calls could not be sent to the batch of a vendor', { batch_id, cause })
      if (hasKind(cause, 'rate_limit')) return this.#sendLater(tenant, wave)
      if (!hasKind(cause, 'upstream') && !hasKind(cause, 'not_found')) return wave // It may have them: the next look asks.
      await this.#keep(tenant, { of, wave, answers: new Map() })
      return undefined
    }
  }

  #nextLook(wave: Wave | 'refused'): number {
    const nowMs = this.#deps.now().getTime()
    const grown = wave === 'refused' ? PAUSE.most : PAUSE.share * (nowMs - wave.at_ms)
    return nowMs + Math.min(PAUSE.most, Math.max(PAUSE.least, grown))
  }
}

type Known = ChunkOfBatch & { definition: Flow['definition'] }
/** `isHeldUp`: an item has no calls yet, and is not ready. */
type Rehearsed = { calls: readonly BatchCall[]; isHeldUp: boolean }

const NOTHING: Rehearsed = { calls: [], isHeldUp: false }

const toolsOf = ({ tools, sub_agents: agents }: Flow['definition']): string[] =>
  [tools, ...agents.map((each) => each.tools)].flat()

/** A wave that waits, or that is to be sent again later. */
type Looked = Wave | 'refused' | undefined

/** The vendor may have a wave, too, for whose submission there was no answer. */
async function cancel(vendor: VendorBatches, wave: Wave): Promise<void> {
  const { vendor_id: id } = wave
  try {
    const found = id === null ? await vendor.find({ ...wave, mark: markOf(wave) }) : { id }
    if (found && found !== 'unsure') await vendor.cancel(found.id)
  } catch {} // It has ended, or will.
}

/** The results for all, in their order, of a few at a time. */
async function inSlices<T>(all: readonly number[], work: (each: number) => Promise<T[]>): Promise<T[]> {
  const results: T[][] = []
  for (let at = 0; at < all.length; at += AT_ONCE)
    results.push(...(await Promise.all(all.slice(at, at + AT_ONCE).map(work))))
  return results.flat()
}

type Looking = { of: ChunkOfBatch; wave: Wave; vendor: VendorBatches; isLast: boolean }
type Answered = { of: ChunkOfBatch; wave: Wave; answers: ReadonlyMap<string, BatchAnswer> }
type Submitting = { of: ChunkOfBatch; vendor: VendorBatches; calls: readonly BatchCall[]; number: number }

const spanOf = ({ created_at, deadline_at }: Batch): number => Date.parse(deadline_at) - Date.parse(created_at)
