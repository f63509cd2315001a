import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { quantile } from '../../statistics.ts'
import { STAMP_END, stampAt } from '../source/prepared-events.ts'
import type { Script } from '../source/script.ts'
import { requestText, type Target } from '../target.ts'
import type { Connect } from './connection.ts'
import { FrameChecker } from './frame-checker.ts'
import { ResponseReader } from './response-reader.ts'

export type CrowdOrder = { target: Target; script: Script; streams: number; perSecond?: number }

export type Counted = { events: number; ms: number }

/** Errors of the streams so far. `lost` and `repeated` must be zero. */
export type CrowdReport = { lost: number; repeated: number; ended: number; endings: string[] }

const OPEN_TOGETHER = 256
const OPEN_WITHIN_MS = 30_000
const LOOK_EVERY_MS = 5

/** Reads and checks many streams of one server. */
export class Crowd {
  readonly #connect: Connect
  readonly #streams: CrowdStream[] = []
  #failure: Error | undefined

  constructor(connect: Connect) {
    this.#connect = connect
  }

  /** Opens the streams. Resolves when each has received its first event. Throws after 30 s. */
  async open({ target, script, streams, perSecond = Infinity }: CrowdOrder): Promise<void> {
    const request = requestText(target, script)
    const start = performance.now()
    const isOpen = () => this.#streams.every(({ checker }) => checker.events > 0)
    while (this.#streams.length < streams || !isOpen()) {
      const due = Math.min(streams, ((performance.now() - start) * perSecond) / 1000, this.#opened() + OPEN_TOGETHER)
      while (this.#streams.length < due) this.#streams.push(this.#openOne(target.port, request))
      if (this.#failure) throw this.#failure
      if (performance.now() - start > OPEN_WITHIN_MS) throw new Error(`${this.#opened()} of ${streams} streams opened`)
      await sleep(LOOK_EVERY_MS)
    }
  }

  /** Counts the events of all streams but the first `except` for `ms`. */
  async count(ms: number, except = 0): Promise<Counted> {
    const start = performance.now()
    const before = this.#events(except)
    await sleep(ms)
    if (this.#failure) throw this.#failure
    return { events: this.#events(except) - before, ms: performance.now() - start }
  }

  /** Measures the time from the creation of each event to its arrival, for `ms`. */
  async latencies(ms: number): Promise<{ p50: number; p99: number }> {
    const taken: number[] = []
    for (const { checker } of this.#streams) {
      checker.onEvent = (bytes, at, digits) => {
        const from = at + stampAt(digits)
        taken.push(Number(process.hrtime.bigint() - BigInt(bytes.toString('latin1', from, from + STAMP_END))) / 1e6)
      }
    }
    await sleep(ms)
    for (const { checker } of this.#streams) checker.onEvent = undefined
    return { p50: quantile(taken, 0.5), p99: quantile(taken, 0.99) }
  }

  /** Stops or continues reading the streams from `from` to `to`. */
  setReading({ isReading, from, to }: { isReading: boolean; from: number; to: number }): void {
    for (const { socket } of this.#streams.slice(from, to)) {
      if (isReading) socket.resume()
      else socket.pause()
    }
  }

  /** Resolves when all streams have ended, or after `withinMs`; `report` tells how many have. */
  async ends(withinMs: number): Promise<void> {
    const until = performance.now() + withinMs
    while (performance.now() < until && this.#streams.some(({ hasEnded }) => !hasEnded)) await sleep(LOOK_EVERY_MS)
  }

  report(): CrowdReport {
    const sum = (of: (stream: CrowdStream) => number) => this.#streams.reduce((all, stream) => all + of(stream), 0)
    return {
      lost: sum(({ checker }) => checker.lost),
      repeated: sum(({ checker }) => checker.repeated),
      ended: sum(({ hasEnded }) => Number(hasEnded)),
      endings: [...new Set(this.#streams.map(({ checker }) => checker.lastEvent).filter((event) => event !== ''))],
    }
  }

  /** Resets the connections, so that no TIME_WAIT states occupy the ports. */
  close(): void {
    for (const { socket } of this.#streams) socket.resetAndDestroy()
    this.#streams.length = 0
    this.#failure = undefined
  }

  #openOne(port: number, request: string): CrowdStream {
    const checker = new FrameChecker()
    const stream: CrowdStream = { checker, hasEnded: false, socket: undefined as unknown as Socket }
    const reader = new ResponseReader({
      body: (bytes, from, to) => checker.read(bytes, from, to),
      ended: () => {
        stream.hasEnded = true
      },
    })
    stream.socket = this.#connect(port, reader, (cause) => (this.#failure = cause))
    stream.socket.write(request)
    return stream
  }

  #opened(): number {
    return this.#streams.reduce((count, { checker }) => count + Number(checker.events > 0), 0)
  }

  #events(except: number): number {
    return this.#streams.slice(except).reduce((count, { checker }) => count + checker.events, 0)
  }
}

type CrowdStream = { checker: FrameChecker; socket: Socket; hasEnded: boolean }
