import { setTimeout as sleep } from 'node:timers/promises'
import type { OpenedRun } from '../../../cluster/commands/broker.ts'
import type { FrameStream, Frames } from '../../../cluster/journal/frame-stream.ts'
import type { RunEvent } from '../../../kernel/events.ts'
import { epochOfRun } from '../../../kernel/ids.ts'
import type { Log } from '../../../kernel/log.ts'
import type { Metrics } from '../../../kernel/metrics.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { traceFields } from '../../../kernel/trace.ts'
import { outcomeOf, RunFigures } from '../run-figures.ts'
import { lostRecord, type RunFacts, type RunRecord, recordOf } from './record.ts'
import { isAway } from './run-history.ts'
import type { RunRecordStore } from './store.ts'

export type RunWitnessDeps = {
  store: Pick<RunRecordStore, 'add'>
  auditOf(tenant: TenantId): Promise<{ store_payloads: boolean; retention_days: number }>
  metrics: Metrics
  log: Log
  now?: () => number
}

/** A run that a gateway starts, and what is known of it. */
export type WitnessedRun = Pick<RunFacts, 'tenant' | 'kind' | 'session_id' | 'customer_id' | 'title'>

/** Longer than it takes until a dead worker is noticed. */
const REMEMBER_MS = 20_000
const MAX_REMEMBERED = 20_000
const MAX_WAITING = 10_000
const RETRY_MS = 1_000

type Seen = { facts: RunFacts; terminal: string; endedAt: string; at: number }

/**
 * Records in a gateway what a worker could not because it died: the ends that the gateway has delivered shortly before, as they were, and the runs that it
 * has told its clients are lost. The records of a worker that lives come first, and stay.
 */
export class RunWitness {
  readonly #deps: RunWitnessDeps
  /** The ends that were delivered lately, oldest first. */
  readonly #seen = new Map<string, Seen>()
  readonly #waiting: { tenant: TenantId; record: RunRecord }[] = []
  #isWriting = false

  constructor(deps: RunWitnessDeps) {
    this.#deps = deps
  }

  /** The same run, whose frames are watched. */
  watch({ runId, frames }: OpenedRun, run: WitnessedRun): OpenedRun {
    const { request_id, subject } = traceFields()
    const facts = { ...run, run_id: runId, started_at: new Date(this.#now()).toISOString(), request_id, subject }
    const onEnded = (last: Frames) => {
      if (last.failure === 'worker_lost') this.#add(facts.tenant, lostRecord(facts, this.#time()))
      else if (last.failure === undefined) this.#remember(facts, last)
    }
    return { runId, frames: watched(frames, onEnded) }
  }

  /** The worker of this epoch is gone, and with it what it has not recorded. */
  onWorkerLost(epoch: number): void {
    for (const seen of this.#seen.values()) {
      const { run_id: runId, tenant } = seen.facts
      if (epochOfRun(runId) !== epoch) continue
      this.#seen.delete(runId)
      const record = recordSeen(seen)
      if (record) this.#add(tenant, record)
    }
  }

  #now(): number {
    return this.#deps.now?.() ?? Date.now()
  }

  #time(): string {
    return new Date(this.#now()).toISOString()
  }

  #remember(facts: RunFacts, { text }: Frames): void {
    const at = this.#now()
    for (const [runId, seen] of this.#seen) {
      if (at - seen.at < REMEMBER_MS && this.#seen.size < MAX_REMEMBERED) break
      this.#seen.delete(runId)
    }
    this.#seen.set(facts.run_id, { facts, terminal: lastFrameOf(text), endedAt: this.#time(), at })
  }

  #add(tenant: TenantId, record: RunRecord): void {
    if (this.#waiting.length >= MAX_WAITING) return this.#deps.metrics.count('run_records_lost')
    this.#waiting.push({ tenant, record })
    if (!this.#isWriting) void this.#write()
  }

  async #write(): Promise<void> {
    this.#isWriting = true
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, MAX_BATCH)
      try {
        await this.#deps.store.add(await Promise.all(batch.map((each) => this.#asKept(each))))
        this.#waiting.splice(0, batch.length)
      } catch (cause) {
        if (isAway(cause)) await sleep(RETRY_MS, undefined, { ref: false })
        else this.#giveUp(this.#waiting.splice(0, batch.length).length, cause)
      }
    }
    this.#isWriting = false
  }

  #giveUp(count: number, cause: unknown): void {
    this.#deps.metrics.count('run_records_lost', count)
    this.#deps.log.error('the ends of runs of a dead worker could not be recorded', { count, cause })
  }

  async #asKept({ tenant, record: { title, ...record } }: { tenant: TenantId; record: RunRecord }) {
    const { store_payloads, retention_days } = await this.#deps.auditOf(tenant)
    const kept = { ...record, ...(store_payloads && title !== undefined && { title }) }
    return { tenant, record: kept, frames: undefined, keptDays: retention_days }
  }
}

const MAX_BATCH = 500

/** The same frames; `onEnded` is called with the last ones when all were read. */
function watched(frames: FrameStream, onEnded: (last: Frames) => void): FrameStream {
  const reading = frames[Symbol.asyncIterator]()
  let last: Frames | undefined
  const note = (read: IteratorResult<Frames>) => {
    if (!read.done) last = read.value
    else if (last) onEnded(last)
    return read
  }
  const iterator: AsyncIterableIterator<Frames> = {
    next: () => reading.next().then(note),
    return: async () => (await reading.return?.()) ?? { done: true, value: undefined },
    [Symbol.asyncIterator]: () => iterator,
  }
  return iterator
}

/** The longest last frame that is looked at: its event is short, unless it is an error with a long message. */
const TERMINAL_CHARS = 4 * 1024

/** A copy, so that the buffer of all frames is not kept. */
function lastFrameOf(text: string | Uint8Array): string {
  const end =
    typeof text === 'string' ? text.slice(-TERMINAL_CHARS) : Buffer.from(text.subarray(-TERMINAL_CHARS)).toString()
  return end.slice(Math.max(0, end.lastIndexOf('\nid: ') + 1))
}

const FRAME = /^id: (\d+)\nevent: (\w+)\ndata: (.*)\n\n$/

function recordSeen({ facts, terminal, endedAt }: Seen): RunRecord | undefined {
  const [, id, type, data] = FRAME.exec(terminal) ?? []
  if (data === undefined) return undefined
  const event = { type, ...(JSON.parse(data) as object) } as RunEvent
  const figures = new RunFigures()
  figures.note(event)
  return recordOf(facts, figures, { status: outcomeOf(event), endedAt, eventCount: Number(id) })
}
