import type { MemoryBus, Wire } from '../../shared/cluster/bus/memory-bus.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import type { Owner, Time } from './time.ts'

/** How long a command waits for a connection that is away before it fails. */
const PATIENCE_MS = 1_000

/** A way in one direction: what is sent first arrives first. */
class Way {
  readonly #time: Time
  #lastAt = 0

  constructor(time: Time) {
    this.#time = time
  }

  /** The delay of something that is sent now and takes `ms` by itself. */
  delay(ms: number): number {
    this.#lastAt = Math.max(this.#lastAt, this.#time.nowMs + ms)
    return this.#lastAt - this.#time.nowMs
  }
}

/** The connection of one process to Redis. */
type Connection = { owner: Owner; up: Way; down: Way; pushed: Way; isCut: boolean; generation: number }

/** The wires between the processes and Redis: they are slow or cut, and lose or double what goes over them, as the faults say. */
export class FaultyWire implements Wire {
  readonly #time: Time
  readonly #connections = new Map<MemoryBus, Connection>()
  #isRedisAway = false
  #onMended: (() => void)[] = []
  readonly usual = { lossy: 0, doubling: 0, slowMs: 0.3 } as const
  /** The probability that a message to a process is lost. */
  lossy: number = this.usual.lossy
  /** The probability that the answer of a command is lost, so that it is sent again. */
  doubling: number = this.usual.doubling
  /** The longest that anything is under way, in milliseconds. */
  slowMs: number = this.usual.slowMs

  constructor(time: Time) {
    this.#time = time
  }

  /** Names the process that a bus belongs to. */
  connect(bus: MemoryBus, owner: Owner): void {
    const [up, down, pushed] = [new Way(this.#time), new Way(this.#time), new Way(this.#time)]
    this.#connections.set(bus, { owner, up, down, pushed, isCut: false, generation: 0 })
  }

  /** Cuts or mends the connection of this process. */
  setCut(owner: Owner, isCut: boolean): void {
    for (const [bus, connection] of this.#connections) {
      if (connection.owner !== owner || connection.isCut === isCut) continue
      connection.isCut = isCut
      this.#changed(bus, connection)
    }
  }

  isCut(owner: Owner): boolean {
    return [...this.#connections.values()].some((connection) => connection.owner === owner && connection.isCut)
  }

  /** Takes Redis away from all, or brings it back. */
  setRedisAway(isAway: boolean): void {
    this.#isRedisAway = isAway
    for (const [bus, connection] of this.#connections) this.#changed(bus, connection)
  }

  async ask<T>(bus: MemoryBus, act: () => T): Promise<T> {
    const connection = this.#connectionOf(bus)
    for (;;) {
      await this.#whenUp(connection)
      const { generation } = connection
      await this.#travel(this.#time.world, connection.up)
      if (connection.generation !== generation) continue // It was lost before it arrived, and is sent again.
      const outcome = outcomeOf(act)
      await this.#travel(connection.owner, connection.down)
      const isAnswerLost = connection.generation !== generation || this.#time.random.chance(this.doubling)
      if (isAnswerLost) continue
      if ('cause' in outcome) throw outcome.cause
      return outcome.value
    }
  }

  deliver(bus: MemoryBus, act: () => void): void {
    const connection = this.#connectionOf(bus)
    if (this.#isDown(connection) || this.#time.random.chance(this.lossy)) return
    const { generation } = connection
    this.#time.after(connection.owner, connection.pushed.delay(this.#delayMs()), () => {
      if (connection.generation === generation) act()
    })
  }

  #connectionOf(bus: MemoryBus): Connection {
    const connection = this.#connections.get(bus)
    if (!connection) throw new Error('this bus belongs to no process')
    return connection
  }

  #isDown({ isCut }: Connection): boolean {
    return isCut || this.#isRedisAway
  }

  /** Everything under way is lost. A bus shows that it is away as long as its connection is down. */
  #changed(bus: MemoryBus, connection: Connection): void {
    connection.generation++
    if (this.#isDown(connection)) return bus.cut()
    bus.mend()
    const waiting = this.#onMended
    this.#onMended = []
    for (const wake of waiting) wake()
  }

  async #whenUp(connection: Connection): Promise<void> {
    const until = this.#time.nowMs + PATIENCE_MS
    while (this.#isDown(connection)) {
      const leftMs = until - this.#time.nowMs
      if (leftMs <= 0) throw new AppError('unavailable', 'Redis does not answer', { retryAfterSecs: 2 })
      await new Promise<void>((resolve) => {
        this.#time.after(connection.owner, leftMs, resolve)
        this.#onMended.push(() => this.#time.after(connection.owner, 0, resolve))
      })
    }
  }

  #travel(to: Owner, way: Way): Promise<void> {
    return this.#time.pause(way.delay(this.#delayMs()), to)
  }

  #delayMs(): number {
    return this.#time.random.between(0.05, this.slowMs)
  }
}

type Outcome<T> = { value: T } | { cause: unknown }

function outcomeOf<T>(act: () => T): Outcome<T> {
  try {
    return { value: act() }
  } catch (cause) {
    return { cause }
  }
}
