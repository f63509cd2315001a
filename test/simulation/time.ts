import { AsyncLocalStorage } from 'node:async_hooks'
import type { Random } from './random.ts'

/** The process that is acting, through all that follows from what it does. */
const current = new AsyncLocalStorage<Owner>()

/** Something that a process does at a moment: a timer, an arrival, an answer. */
export type Turn = { at: number; order: number; of: Owner; act: (() => void) | undefined }

/**
 * A process of the simulated world, or a client. The turns of a frozen one wait until it goes on, and those of a dead one never come; its
 * promises that are pending stay so.
 */
export class Owner {
  readonly name: string
  /** Calls a function as this process. */
  readonly as: <T>(act: () => T) => T
  state: 'running' | 'frozen' | 'dead' = 'running'
  /** How far this process's wall clock is ahead. */
  wallAheadMs = 0
  readonly held: Turn[] = []

  constructor(name: string) {
    this.name = name
    this.as = current.run(this, () => AsyncLocalStorage.snapshot())
  }
}

const START = Date.UTC(2026, 0, 1)
/** Node's own, before `patchNode` replaces it. */
const realImmediate = setImmediate

/** The time of a simulated world, which passes from turn to turn. All that happens in a turn happens at one moment. */
export class Time {
  readonly random: Random
  /** Owns the turns of no process: those of the wires, Redis, the plan of faults. */
  readonly world = new Owner('world')
  readonly #queue = new Heap()
  #nowMs = 0
  #order = 0
  turns = 0

  constructor(random: Random) {
    this.random = random
  }

  /** Milliseconds since the beginning. */
  get nowMs(): number {
    return this.#nowMs
  }

  /** The process that is acting now. */
  get current(): Owner {
    return current.getStore() ?? this.world
  }

  /** The wall clock of the acting process. */
  wallMs(): number {
    return START + this.#nowMs + this.current.wallAheadMs
  }

  /** Lets `owner` act after `delayMs`, behind what was scheduled for the same moment before. */
  after(owner: Owner, delayMs: number, act: () => void): Turn {
    const turn: Turn = { at: this.#nowMs + Math.max(0, delayMs), order: ++this.#order, of: owner, act }
    this.#queue.push(turn)
    return turn
  }

  cancel(turn: Turn): void {
    turn.act = undefined
  }

  /** Resolves after `delayMs` in a turn of `owner`, which is the acting process by default. */
  pause(delayMs: number, owner: Owner = this.current): Promise<void> {
    return new Promise((resolve) => this.after(owner, delayMs, resolve))
  }

  freeze(owner: Owner): void {
    if (owner.state === 'running') owner.state = 'frozen'
  }

  /** Lets a frozen process go on: all its turns that are due come now. */
  thaw(owner: Owner): void {
    if (owner.state !== 'frozen') return
    owner.state = 'running'
    for (const turn of owner.held.splice(0)) this.#queue.push({ ...turn, at: this.#nowMs, act: () => turn.act?.() })
  }

  kill(owner: Owner): void {
    owner.state = 'dead'
    owner.held.length = 0
  }

  /** Takes the turns one after the other until `untilMs`. `afterEach` is called when all that followed from a turn has happened. */
  async run(untilMs: number, afterEach: () => void): Promise<void> {
    for (let turn = this.#queue.first; turn && turn.at <= untilMs; turn = this.#queue.first) {
      this.#queue.shift()
      if (!turn.act || turn.of.state === 'dead') continue
      if (turn.of.state === 'frozen') {
        turn.of.held.push(turn)
        continue
      }
      this.#nowMs = Math.max(this.#nowMs, turn.at)
      this.turns++
      turn.of.as(turn.act)
      await promisesSettled()
      afterEach()
    }
    this.#nowMs = untilMs
  }

  /** Forgets all turns. */
  end(): void {
    this.#queue.clear()
  }
}

/** Resolves when no promise can be settled any more without a further turn. */
const promisesSettled = (): Promise<void> => new Promise((resolve) => void realImmediate(resolve))

/** The turns that come, the next one first. */
class Heap {
  readonly #turns: Turn[] = []

  get first(): Turn | undefined {
    return this.#turns[0]
  }

  clear(): void {
    this.#turns.length = 0
  }

  push(turn: Turn): void {
    const turns = this.#turns
    let at = turns.push(turn) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!this.#isBefore(at, parent)) return
      this.#swap(at, parent)
      at = parent
    }
  }

  shift(): void {
    const turns = this.#turns
    const last = turns.pop()
    if (!last || turns.length === 0) return
    turns[0] = last
    for (let at = 0; ; ) {
      const left = 2 * at + 1
      if (left >= turns.length) return
      const child = left + 1 < turns.length && this.#isBefore(left + 1, left) ? left + 1 : left
      if (!this.#isBefore(child, at)) return
      this.#swap(at, child)
      at = child
    }
  }

  #isBefore(one: number, other: number): boolean {
    const [a, b] = [this.#turns[one], this.#turns[other]]
    return a !== undefined && b !== undefined && (a.at < b.at || (a.at === b.at && a.order < b.order))
  }

  #swap(one: number, other: number): void {
    const [a, b] = [this.#turns[one], this.#turns[other]]
    if (!a || !b) return
    this.#turns[one] = b
    this.#turns[other] = a
  }
}
