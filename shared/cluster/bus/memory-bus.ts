import { AppError } from '../../kernel/errors.ts'
import type { Bus } from './bus.ts'

/** Imitates a connection to Redis: how a process reaches the data that all processes share. */
export type Wire = {
  /**
   * Runs `act`, which reads or changes the shared data in one step, and resolves with its result or rejects with its error. If the result
   * is lost on the way back, `act` is run again, like a command to Redis.
   */
  ask<T>(from: MemoryBus, act: () => T): Promise<T>
  /** Runs `act`, which hands a message to this process: later, in the order of the calls, or never if the message is lost. */
  deliver(to: MemoryBus, act: () => void): void
}

/** Each step takes one turn of the event loop. */
const LOOP_TURNS: Wire = {
  async ask(_from, act) {
    await new Promise(setImmediate)
    return act()
  },
  deliver: (_to, act) => void setImmediate(act),
}

/** Connects simulated processes that are all in this one. A message is copied for each receiver, as on a real connection. */
export class MemoryNetwork {
  readonly #buses = new Set<MemoryBus>()
  readonly #wire: Wire

  constructor(wire: Wire = LOOP_TURNS) {
    this.#wire = wire
  }

  /** The bus of one more process. */
  connect(): MemoryBus {
    const bus = new MemoryBus(this.#buses, this.#wire)
    this.#buses.add(bus)
    return bus
  }
}

type Handler = (message: Buffer) => void

/**
 * | State     | Event       | Next state                                                       |
 * |-----------|-------------|------------------------------------------------------------------|
 * | connected | `cut`       | away: nothing is sent, and what is sent to this process is lost  |
 * | away      | `mend`      | connected, with the same subscriptions                           |
 * | any       | `close`     | closed: like away, but forever                                        |
 */
export class MemoryBus implements Bus {
  /** The buses of all processes that are not closed. */
  readonly #all: Set<MemoryBus>
  readonly #wire: Wire
  readonly #handlers = new Map<string, Handler>()
  #awaySince: number | undefined

  constructor(all: Set<MemoryBus>, wire: Wire) {
    this.#all = all
    this.#wire = wire
  }

  /** Breaks the connection of this process. */
  cut(): void {
    this.#awaySince ??= performance.now()
  }

  mend(): void {
    if (this.#all.has(this)) this.#awaySince = undefined
  }

  async publish(channel: string, message: Buffer): Promise<number> {
    const sent = Buffer.from(message) // The publisher may write into its own buffer before the message is sent.
    return this.ask(() => {
      const receivers = [...this.#all].filter((each) => each.#isSubscribed(channel))
      for (const each of receivers) each.#receive(channel, Buffer.from(sent))
      return receivers.length
    })
  }

  async subscribe(channel: string, onMessage: Handler): Promise<void> {
    await this.ask(() => this.#handlers.set(channel, onMessage))
  }

  async unsubscribe(channel: string): Promise<void> {
    this.#handlers.delete(channel)
    await this.ask(() => {})
  }

  async resubscribe(): Promise<void> {
    await this.ask(() => {})
  }

  reconnect(): void {}

  awayMs(): number {
    return this.#awaySince === undefined ? 0 : performance.now() - this.#awaySince
  }

  async close(): Promise<void> {
    this.#all.delete(this)
    this.#handlers.clear()
    this.cut()
  }

  /** How many processes have subscribed to this channel. */
  subscribers(channel: string): number {
    return [...this.#all].filter((each) => each.#isSubscribed(channel)).length
  }

  /** Reads or changes the shared data, in one step and in the order of the calls. Throws `unavailable` while this process is away. */
  ask<T>(act: () => T): Promise<T> {
    return this.#wire.ask(this, () => {
      if (this.#awaySince !== undefined) throw unavailable()
      return act()
    })
  }

  #isSubscribed(channel: string): boolean {
    return this.#awaySince === undefined && this.#handlers.has(channel)
  }

  #receive(channel: string, message: Buffer): void {
    this.#wire.deliver(this, () => {
      if (this.#isSubscribed(channel)) this.#handlers.get(channel)?.(message)
    })
  }
}

const unavailable = () =>
  new AppError('unavailable', 'the cluster cannot be reached at the moment; try again', { retryAfterSecs: 2 })
