import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { EventPosition } from '../../../shared/tenancy/events/port.ts'
import { createConnect } from '../relay/client/connection.ts'
import { ResponseReader } from '../relay/client/response-reader.ts'
import { BASE_PATH } from '../relay/target.ts'
import { EventReader } from './event-reader.ts'

/** Opens this many readers at a gateway; their next event is the one after a position. */
export type ReadersOrder = { port: number; count: number; after: EventPosition }

/** The time in which events were written that count, in milliseconds since 1970, and the id of the last event of all. */
export type ReportOrder = { from: number; to: number; last: string; withinMs: number }

export type ReadersReport = {
  /** Readers that have not received each event once and in order, up to the last one. */
  faulty: number
  /** The time from the writing of each event to its arrival at each reader, in milliseconds. */
  delays: number[]
}

const OPEN_TOGETHER = 100
const OPEN_WITHIN_MS = 20_000
const LOOK_EVERY_MS = 5
const DIGITS = 100

type Reading = { events: EventReader; socket: Socket; hasEnded: boolean }

/** Readers of a tenant's events at one gateway. It runs in a process of its own. */
export class EventReaders {
  readonly #connect = createConnect()
  readonly #arrivals: { at: number; ms: number }[] = []
  #readings: Reading[] = []
  #failure: Error | undefined

  /** Resolves when each stream is open. Throws after 20 s. */
  async open({ port, count, after }: ReadersOrder): Promise<void> {
    const deadline = performance.now() + OPEN_WITHIN_MS
    while (this.#readings.length < count || this.#countOpen() < count) {
      const most = Math.min(count, this.#countOpen() + OPEN_TOGETHER)
      while (this.#readings.length < most) this.#readings.push(this.#openOne(port, after))
      if (this.#failure) throw this.#failure
      if (performance.now() > deadline) throw new Error(`${this.#countOpen()} of ${count} readers opened`)
      await sleep(LOOK_EVERY_MS)
    }
  }

  /** Waits until all readers have the last event, or the time is over. */
  async report({ from, to, last, withinMs }: ReportOrder): Promise<ReadersReport> {
    const deadline = performance.now() + withinMs
    const isComplete = ({ events, hasEnded }: Reading) => events.isAt(last) && events.faults === 0 && !hasEnded
    while (!this.#readings.every(isComplete) && performance.now() < deadline) await sleep(LOOK_EVERY_MS)
    if (this.#failure) throw this.#failure
    return {
      faulty: this.#readings.filter((reading) => !isComplete(reading)).length,
      delays: this.#arrivals.filter(({ at }) => at >= from && at < to).map(({ ms }) => ms),
    }
  }

  #openOne(port: number, after: EventPosition): Reading {
    const events = new EventReader(after, (at) => {
      const ms = performance.timeOrigin + performance.now() - at
      this.#arrivals.push({ at, ms: Math.round(ms * DIGITS) / DIGITS })
    })
    const reading: Reading = { events, hasEnded: false, socket: undefined as unknown as Socket }
    const reader = new ResponseReader({
      body: (bytes, from, to) => events.read(bytes.toString('latin1', from, to)),
      ended: () => {
        reading.hasEnded = true
      },
    })
    reading.socket = this.#connect(port, reader, (cause) => (this.#failure = cause))
    reading.socket.once('close', () => {
      reading.hasEnded = true
    })
    reading.socket.write(`GET ${BASE_PATH}/events HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`)
    return reading
  }

  #countOpen(): number {
    return this.#readings.filter(({ events }) => events.isOpen).length
  }
}
