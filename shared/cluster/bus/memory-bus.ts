import { AppError } from '../../kernel/errors.ts'
import type { Bus } from './bus.ts'

/**
 * The connections between processes that are all in this one. A message is copied for each receiver, and comes in a later turn of the
 * event loop, as over a wire.
 */
export class MemoryNetwork {
  readonly #buses = new Set<MemoryBus>()

  /** The bus of one more process. */
  connect(): MemoryBus {
    const bus = new MemoryBus(this.#buses)
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
 * | any       | `close`     | closed: as away, for good                                        |
 */
export class MemoryBus implements Bus {
  /** Those of all processes that are not closed. */
  readonly #all: Set<MemoryBus>
  readonly #handlers = new Map<string, Handler>()
  #awaySince: number | undefined

  constructor(all: Set<MemoryBus>) {
    this.#all = all
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
    const receivers = await this.ask(() => [...this.#all].filter((each) => each.#isSubscribed(channel)))
    for (const each of receivers) each.#receive(channel, Buffer.from(sent))
    return receivers.length
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

  /**
   * Reads or changes what the processes share, in one step in a later turn of the event loop, in the order of the calls. Throws
   * `unavailable` while this process is away.
   */
  async ask<T>(act: () => T): Promise<T> {
    await new Promise(setImmediate)
    if (this.#awaySince !== undefined) throw unavailable()
    return act()
  }

  #isSubscribed(channel: string): boolean {
    return this.#awaySince === undefined && this.#handlers.has(channel)
  }

  #receive(channel: string, message: Buffer): void {
    setImmediate(() => {
      if (this.#isSubscribed(channel)) this.#handlers.get(channel)?.(message)
    })
  }
}

const unavailable = () =>
  new AppError('unavailable', 'the cluster cannot be reached at the moment; try again', { retryAfterSecs: 2 })
