import { randomUUID } from 'node:crypto'
import { Door, type DoorDeps, type Entered, type GateCall, type Target } from './door.ts'

const TIDY_MS = 1_000

/**
 * The turns of model calls at the providers. The limits of an account are learned from its answers and refusals; calls without room wait here, in
 * the order of `FairQueue`, instead of being refused by the provider (D52). If no limit is known a call passes at once.
 */
export class ModelGate {
  readonly #deps: DoorDeps
  readonly #process = randomUUID()
  readonly #doors = new Map<string, Door>()
  readonly #timer: NodeJS.Timeout

  constructor(deps: DoorDeps) {
    this.#deps = deps
    this.#timer = setInterval(() => this.#tidy(), TIDY_MS).unref()
    const sum = (read: (door: Door) => number) => [...this.#doors.values()].reduce((all, door) => all + read(door), 0)
    deps.metrics.gauge('model_calls_waiting', () => sum(({ queued }) => queued))
    deps.metrics.gauge('models_resting', () => sum(({ health }) => Number(health.rests(performance.now()))))
  }

  /** A call that is aborted while it waits gets its turn at once, and then ends by itself. */
  enter(call: GateCall, signal: AbortSignal): Entered {
    return this.stateOf(call).enter(call, signal)
  }

  /** The state of a model; its health is computed from the calls of all processes (D56). */
  stateOf(target: Target): Door {
    const key = JSON.stringify([target.scope, target.model])
    const door = this.#doors.get(key) ?? new Door(target, this.#process, this.#deps)
    this.#doors.set(key, door)
    return door
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #tidy(): void {
    const now = performance.now()
    for (const [key, door] of this.#doors) if (door.tidy(now)) this.#doors.delete(key)
  }
}
