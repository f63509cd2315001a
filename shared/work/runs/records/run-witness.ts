import type { OpenedRun } from '../../../cluster/commands/broker.ts'
import type { Frames } from '../../../cluster/journal/frame-stream.ts'
import type { RunEvent } from '../../../kernel/events.ts'
import { epochOfRun } from '../../../kernel/ids.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { isoTime } from '../../../kernel/time.ts'
import { traceFields } from '../../../kernel/trace.ts'
import { outcomeOf, RunFigures } from '../run-figures.ts'
import type { EndQueue } from './end-queue.ts'
import { lostRecord, type RunFacts, type RunRecord, recordOf } from './record.ts'

export type RunWitnessDeps = {
  ends: Pick<EndQueue, 'add' | 'settled'>
  now?: () => number
}

/** The facts of a run that a gateway starts. */
export type WitnessedRun = Pick<
  RunFacts,
  'tenant' | 'kind' | 'session_id' | 'customer_id' | 'metadata' | 'attachments' | 'title'
>

/** Longer than the time until a dead worker is noticed. */
const REMEMBER_MS = 20_000
const MAX_REMEMBERED = 20_000
/** The oldest entries are removed in groups of this size or once a second, because each removal moves all remaining entries. */
const FORGET_TOGETHER = 1_000
const FORGET_EVERY_MS = 1_000

/** The facts of a run at its start, as the caller gave them. `RunFacts` are built from them only for the few runs that are recorded here. */
type Watched = WitnessedRun & Pick<RunFacts, 'run_id' | 'request_id' | 'subject'> & { startedMs: number }
type Seen = { watched: Watched; terminal: string; endedMs: number }

/**
 * Lets a gateway record what a dead worker could not: the ends that the gateway has just delivered, and the runs that it reported to clients as lost.
 * If the worker lives, its own record is written first and stays.
 */
export class RunWitness {
  readonly #deps: RunWitnessDeps
  /** The ends that were delivered lately, oldest first. */
  #seen: Seen[] = []
  #forgotMs = 0

  constructor(deps: RunWitnessDeps) {
    this.#deps = deps
  }

  /** Watches the frames of a run that has begun. */
  watch({ runId, frames }: OpenedRun, run: WitnessedRun): void {
    const { request_id, subject } = traceFields()
    const watched: Watched = { ...run, run_id: runId, request_id, subject, startedMs: this.#now() }
    frames.onLast?.((last) => {
      if (last.failure === 'worker_lost') this.#record(run.tenant, lostRecord(factsOf(watched), isoTime(this.#now())))
      else if (last.failure === undefined) this.#remember(watched, last)
    })
  }

  /** The worker of this epoch is dead, so its unrecorded runs must be recorded here. */
  onWorkerLost(epoch: number): void {
    const { lost = [], others = [] } = Object.groupBy(this.#seen, ({ watched }) =>
      epochOfRun(watched.run_id) === epoch ? 'lost' : 'others',
    )
    this.#seen = others
    for (const seen of lost) {
      const record = recordSeen(seen)
      if (record) this.#record(seen.watched.tenant, record)
    }
  }

  /** Resolves when all that it records is stored, or shortly after that time when the store does not answer. */
  settled(): Promise<void> {
    return this.#deps.ends.settled()
  }

  #now(): number {
    return this.#deps.now?.() ?? Date.now()
  }

  #remember(watched: Watched, { text }: Frames): void {
    const endedMs = this.#now()
    const isFull = this.#seen.length >= MAX_REMEMBERED + FORGET_TOGETHER
    if (isFull || endedMs - this.#forgotMs >= FORGET_EVERY_MS) this.#forgetOld(endedMs)
    this.#seen.push({ watched, terminal: lastFrameOf(text), endedMs })
  }

  #forgetOld(nowMs: number): void {
    this.#forgotMs = nowMs
    const surplus = Math.max(0, this.#seen.length - MAX_REMEMBERED)
    const kept = this.#seen.findIndex(({ endedMs }, i) => i >= surplus && nowMs - endedMs < REMEMBER_MS)
    this.#seen.splice(0, kept === -1 ? this.#seen.length : kept)
  }

  #record(tenant: TenantId, record: RunRecord): void {
    this.#deps.ends.add({ tenant, kind: record.kind, record })
  }
}

const factsOf = ({ startedMs, ...facts }: Watched): RunFacts => ({ ...facts, started_at: isoTime(startedMs) })

/** A copy of the last frame, so that the buffer of all frames is not kept. */
function lastFrameOf(text: string | Uint8Array): string {
  if (typeof text === 'string') return headOf(text.slice(text.lastIndexOf(BEGIN) + 1))
  const { buffer, byteOffset, byteLength } = text
  const bytes = Buffer.from(buffer, byteOffset, byteLength)
  return headOf(bytes.toString('utf8', bytes.lastIndexOf(BEGIN) + 1))
}

const BEGIN = '\nid: '
/** The output of a flow, which may be long, is the last field of `done`. */
const OUTPUT = ',"output":'
/** The longest frame without an output that is parsed: such an event is short, unless it is an error with a long message. */
const TERMINAL_CHARS = 4 * 1024

function headOf(frame: string): string {
  const at = frame.slice(0, TERMINAL_CHARS).indexOf(OUTPUT)
  return at < 0 ? frame.slice(-TERMINAL_CHARS) : `${frame.slice(0, at)}}\n\n`
}

const FRAME = /^id: (\d+)\nevent: (\w+)\ndata: (.*)\n\n$/

function recordSeen({ watched, terminal, endedMs }: Seen): RunRecord | undefined {
  const [, id, type, data] = FRAME.exec(terminal) ?? []
  if (data === undefined) return undefined
  const event = { type, ...(JSON.parse(data) as object) } as RunEvent
  const figures = new RunFigures()
  figures.note(event)
  const end = { status: outcomeOf(event), endedAt: isoTime(endedMs), eventCount: Number(id) }
  return recordOf(factsOf(watched), figures, end)
}
