import type { RunEvent } from '../../../shared/kernel/events.ts'
import { waitsForClient } from '../../../shared/work/runs/open-asks.ts'

/**
 * The point at which a running run can move to another worker without making anything void that its client has seen (D37.4): while it only
 * waits for its client's permissions, and after a complete turn, where it pauses on request.
 */
export class SafePoint {
  /** The calls of the present turn that have no result. */
  readonly #calls = new Set<unknown>()
  /**
   * The ids of its open permission requests and of the calls that the client executes. Requests of sub-agents do not
   * count: another worker repeats sub-agents from their start.
   */
  readonly #asks = new Set<string>()
  #isTurnComplete = false
  #wanted: PromiseWithResolvers<void> | undefined
  #left: PromiseWithResolvers<void> | undefined

  /** Call it with each event of the run. `isLast`: its last turn is complete, and only its end is missing. */
  note(event: RunEvent, isLast: boolean): void {
    if (event.type === 'turn_start') this.#begin()
    else if (event.type === 'tool_use') this.#add(event)
    else if (event.type === 'tool_result') this.#remove(event.id)
    else if (event.type === 'permission_request' && this.#calls.has(event.tool_use_id)) this.#asks.add(event.id)
    else if (event.type === 'permission_resolved') this.#asks.delete(event.id)
    else if (event.type === 'turn_end') this.#isTurnComplete = !isLast
    else return
    if (this.#isReached) this.#wanted?.resolve()
  }

  /** Resolves when the run is at such a point, or at once after `hasten`. */
  async reached(): Promise<void> {
    this.#wanted ??= Promise.withResolvers()
    if (this.#isReached) this.#wanted.resolve()
    await this.#wanted.promise
  }

  /** Stops waiting for such a point: the events of the current turn become void. */
  hasten(): void {
    this.#wanted ??= Promise.withResolvers()
    this.#wanted.resolve()
  }

  /** Called before the run's next event is made. If it returns a promise, the run pauses until that resolves. */
  stay(): Promise<void> | undefined {
    if (!this.#wanted || !this.#isTurnComplete) return undefined
    this.#left ??= Promise.withResolvers()
    return this.#left.promise
  }

  /** Lets a paused run continue. */
  leave(): void {
    this.#wanted = undefined
    this.#left?.resolve()
    this.#left = undefined
  }

  get #isReached(): boolean {
    return this.#isTurnComplete || (this.#asks.size > 0 && this.#asks.size === this.#calls.size)
  }

  /** A call that the client executes waits like a call that needs permission. */
  #add(call: Extract<RunEvent, { type: 'tool_use' }>): void {
    this.#calls.add(call.id)
    if (waitsForClient(call)) this.#asks.add(call.id)
  }

  #remove(callId: string): void {
    this.#calls.delete(callId)
    this.#asks.delete(callId)
  }

  #begin(): void {
    this.#calls.clear()
    this.#asks.clear()
    this.#isTurnComplete = false
  }
}
