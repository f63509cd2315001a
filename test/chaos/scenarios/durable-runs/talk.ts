import { setTimeout as sleep } from 'node:timers/promises'
import { checkStream } from '../../../support/stream-grammar.ts'
import { now } from '../../history.ts'
import { gatewayFor } from '../../sessions.ts'
import type { SseFrame } from '../../sse-reader.ts'
import type { StreamClient } from '../../stream-client.ts'
import type { World } from '../../world.ts'

/** What was found wrong, and how long clients waited for a run that another worker went on with. */
export type Findings = {
  messages: number
  recovered: number
  /** Runs of `DURABILITY=sessions` that ended with `worker_lost`, and whose session was kept, or that were gone when a client came back. */
  cut: number
  /** Messages whose gateway died while it started their runs: the key is refused with 409 from then on (D25a), and the client gives them up. */
  unknown: number
  pausesMs: number[]
  ended: string[]
  lost: string[]
  forgotten: string[]
  changed: string[]
  broken: string[]
}

export const noFindings = (): Findings => ({
  ...{ messages: 0, recovered: 0, cut: 0, unknown: 0, pausesMs: [] },
  ...{ ended: [], lost: [], forgotten: [], changed: [], broken: [] },
})

const PATIENCE_MS = 20_000
const RETRY_MS = 250
/** A client that leaves does so after so many frames. */
const LEAVES_AFTER = 8

/** How many pieces of text a run says. */
const PIECES = 24

/** A run whose effect is a line in a file of its session, and its text `0 1 2 …` before and behind it. */
function promptOf(mark: string, sleepMs: number): string {
  const piece = (n: number) => `/say ${n}\n/sleep ${sleepMs}`
  const count = (from: number) => Array.from({ length: PIECES / 3 }, (_, n) => piece(from + n)).join('\n')
  const command = `${effectOf(mark)}; sleep 0.2`
  return [
    count(0),
    `/tool Bash ${JSON.stringify({ command })}`,
    count(8),
    '/tool Glob {"pattern":"*"}',
    count(16),
  ].join('\n')
}

const effectOf = (mark: string): string => `echo ${mark} >> effects.txt`

const NUMBERS = Array.from({ length: PIECES }, (_, n) => n).join(' ')

/** `sleepMs`: the pause between two pieces of a run's text. `killsOthers`: a connection may also end because its gateway was killed. */
type Talking = {
  id: string | undefined
  n: number
  mode: 'sessions' | 'runs'
  sleepMs: number
  killsOthers: boolean
}

/** Sends messages to one session, or starts one-shot runs, one after the other, as a client that comes back when its connection ends. */
export class Talk {
  readonly #world: World
  /** `undefined`: its messages are one-shot runs. */
  readonly #id: string | undefined
  readonly #n: number
  readonly #findings: Findings
  readonly #mode: Talking['mode']
  readonly #sleepMs: number
  readonly #killsOthers: boolean
  /** The messages that ended with `done`. */
  readonly #answered: string[] = []

  constructor(world: World, { id, n, mode, sleepMs, killsOthers }: Talking, findings: Findings) {
    this.#world = world
    this.#id = id
    this.#n = n
    this.#mode = mode
    this.#sleepMs = sleepMs
    this.#killsOthers = killsOthers
    this.#findings = findings
  }

  async until(isOver: () => boolean): Promise<void> {
    const name = this.#id ?? `one_shot_${this.#n}`
    for (let count = 1; !isOver(); count++) await this.#say(`${name}_${count}`, (this.#n + count) % 3 === 0)
    if (this.#id !== undefined) await this.#checkHistory()
  }

  /** Finds the messages that ended with `done` and are not in the history that the session's present worker returns. */
  async #checkHistory(): Promise<void> {
    const history = await this.#history()
    if (history === undefined) return void this.#findings.lost.push(`${this.#id}: its messages cannot be read`)
    this.#findings.forgotten.push(...this.#answered.filter((mark) => !history.includes(effectOf(mark))))
  }

  /** All messages of the session as text; `undefined` when a page is refused until the client's patience is over. */
  async #history(): Promise<string | undefined> {
    const until = now() + PATIENCE_MS
    let [history, cursor] = ['', '']
    for (let n = this.#n; now() < until; n++) {
      const path = `/sessions/${this.#id}/messages?limit=200${cursor}`
      const { status, body } = await this.#world.ask(gatewayFor(this.#world, n), { path })
      if (status !== 200) await sleep(RETRY_MS)
      if (status !== 200) continue
      const { next_cursor: next } = body as { next_cursor: string | null }
      history += JSON.stringify(body)
      if (next === null) return history
      cursor = `&cursor=${encodeURIComponent(next)}`
    }
    return undefined
  }

  async #say(mark: string, leaves: boolean): Promise<void> {
    const reader = new Reader()
    const first = await this.#open(mark, reader)
    if (first === 'unknown') return void this.#findings.unknown++
    if (!first) return void this.#findings.lost.push(`${mark}: ${this.#id} takes no message`)
    this.#findings.messages++
    if (leaves) {
      await first.atLeast(LEAVES_AFTER)
      first.leave()
    } else await first.ended
    reader.isRecorded = first.isRecorded
    const isOwn = leaves || (this.#killsOthers && !reader.hasFailed) // The connection ended with its gateway.
    const replay = leaves || !reader.isOver ? await this.#comeBack(first.run, reader) : undefined
    if (!isOwn && replay) this.#findings.ended.push(`${mark} ${first.run}: the stream ended, then ${replay}`)
    if (reader.isDone) this.#answered.push(mark)
    else if (this.#mode === 'sessions' && (reader.isKept || reader.isGone)) this.#findings.cut++
    else this.#findings.ended.push(`${mark} ${first.run}: ${reader.end}`)
    this.#judge(mark, first.run, reader)
  }

  #judge(mark: string, run: string, reader: Reader): void {
    const findings = this.#findings
    findings.changed.push(...reader.changed.map((what) => `${mark} ${run}: ${what}`))
    if (reader.pauseMs !== undefined) findings.pausesMs.push(reader.pauseMs)
    if (reader.isRecovered) findings.recovered++
    const problem = reader.isDone ? reader.problem : ''
    if (problem !== '') findings.broken.push(`${mark} ${run}: ${problem}`)
  }

  /** Any refusal is retried, until the client's patience is over, with the same key: a message without an answer may have been accepted. */
  async #open(mark: string, reader: Reader): Promise<StreamClient | 'unknown' | undefined> {
    const until = now() + PATIENCE_MS
    for (let tries = 0; now() < until; tries++) {
      const path = this.#id === undefined ? '/agent/run' : `/sessions/${this.#id}/messages`
      const stream = this.#world.stream(gatewayFor(this.#world, this.#n + tries), {
        ...{ path, body: { prompt: promptOf(mark, this.#sleepMs) }, headers: { 'idempotency-key': mark } },
        onFrame: (frame) => reader.take(frame),
      })
      const status = await stream.opened
      if (status === 200) return stream
      if (status === 409 && this.#killsOthers) return 'unknown'
      await sleep(RETRY_MS)
    }
    return undefined
  }

  /** Follows the run behind the last frame, through the gateways in turn, until it has ended. The whole run may still lie ahead. */
  async #comeBack(run: string, reader: Reader): Promise<string> {
    const until = now() + PATIENCE_MS + PIECES * this.#sleepMs
    let how = ''
    for (let n = this.#n + 1; !reader.isOver && !reader.isGone && now() < until; n++) {
      reader.resume()
      const after = reader.lastSeq
      const stream = this.#world.stream(gatewayFor(this.#world, n), {
        ...{ path: `/runs/${run}/events?last_event_id=${after}`, after, onFrame: (frame) => reader.take(frame) },
      })
      const { status } = await stream.ended
      reader.isRecorded ||= stream.isRecorded
      how = `${how} ${status}`
      reader.isGone = this.#mode === 'sessions' && status === 404
      if (!reader.isOver) await sleep(RETRY_MS)
    }
    return `${how} ${reader.end}`
  }
}

/** The frames of one run as its client gets them, over as many connections as it takes. */
class Reader {
  readonly #frames: (SseFrame & { id: number })[] = []
  #at = 0
  readonly changed: string[] = []
  pauseMs: number | undefined
  isRecovered = false
  /** Its end came from the run's record: its worker died when it had ended. */
  isRecorded = false
  /** Its worker has died, and nobody knows the run any more. */
  isGone = false

  get lastSeq(): number {
    return this.#frames.at(-1)?.seq ?? 0
  }

  get end(): string {
    const last = this.#frames.at(-1)
    return last ? `${last.event} ${String(last.data['code'] ?? '')}` : 'nothing'
  }

  get hasFailed(): boolean {
    return this.#frames.at(-1)?.event === 'error'
  }

  /** The worker has died, and the session is kept. */
  get isKept(): boolean {
    const last = this.#frames.at(-1)
    return last?.data['code'] === 'worker_lost' && last.data['session_kept'] === true
  }

  get isDone(): boolean {
    return this.#frames.at(-1)?.event === 'done'
  }

  get isOver(): boolean {
    const last = this.#frames.at(-1)
    return last?.event === 'done' || (last?.event === 'error' && !PASSING.has(String(last.data['code'])))
  }

  /** An error that ended a connection only is none of the run. */
  resume(): void {
    if (this.#frames.at(-1)?.event === 'error') this.#frames.pop()
    this.#at = 0
  }

  take(frame: SseFrame): void {
    if (frame.seq <= this.lastSeq && frame.event !== 'error')
      this.changed.push(`frame ${frame.seq} ${frame.event} came behind frame ${this.lastSeq}`)
    if (frame.data['code'] === 'run_recovered') {
      this.isRecovered = true
      if (this.#at > 0) this.pauseMs = Math.max(this.pauseMs ?? 0, now() - this.#at)
    }
    this.#at = now()
    this.#frames.push({ ...frame, id: frame.seq })
  }

  /** What is wrong with the whole stream. */
  get problem(): string {
    try {
      // The one who comes back to a run that was recovered gets its turns without deltas.
      checkStream(this.#frames, { isRecorded: this.isRecovered || this.isRecorded })
    } catch (cause) {
      return String(cause)
    }
    const said = this.#validTexts().join(' ').replaceAll(/\s+/g, ' ')
    return said.split(NUMBERS).length === 2 ? '' : `it said ${said.slice(-200)}`
  }

  #validTexts(): string[] {
    let texts: { turn: number; text: string }[] = []
    let turn = 0
    for (const { event, data } of this.#frames) {
      if (event === 'turn_start') turn = Number(data['turn_number'])
      if (event === 'text') texts.push({ turn, text: String(data['text']) })
      if (data['code'] !== 'run_recovered') continue
      const { turn_number: from } = data['detail'] as { turn_number: number }
      texts = texts.filter((each) => each.turn < from)
    }
    return texts.map(({ text }) => text)
  }
}

/** Codes of terminal frames that end a connection while the run goes on. */
const PASSING = new Set(['relay_unavailable', 'worker_draining', 'slow_consumer'])
