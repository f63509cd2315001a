import type { RunEvent } from '../../../shared/kernel/events.ts'
import { waitsForClient } from '../../../shared/work/runs/open-asks.ts'

/**
 * Where the run of a session that was begun can go on at another worker, and nothing that its client has seen is void (D37.4): while it waits
 * for its client's permissions alone, and behind a complete turn, where it stays as long as it is wanted there.
 */
export class SafePoint {
  /** The calls of the present turn that have no result. */
  readonly #calls = new Set<unknown>()
  /** Its permission requests that are open, and the calls that the client makes, by their ids. Those of sub-agents are none: sub-agents begin anew elsewhere. */
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

  /** Resolves when it is reached, or at once after `hasten`. */
  async reached(): Promise<void> {
    this.#wanted ??= Promise.withResolvers()
    if (this.#isReached) this.#wanted.resolve()
    await this.#wanted.promise
  }

  /** It need not be reached: what has come of the turn under way becomes void. */
  hasten(): void {
    this.#wanted ??= Promise.withResolvers()
    this.#wanted.resolve()
  }

  /** Before the run's next event is made: a promise resolves when it need not stay here. */
  stay(): Promise<void> | undefined {
    if (!this.#wanted || !this.#isTurnComplete) return undefined
    this.#left ??= Promise.withResolvers()
    return this.#left.promise
  }

  /** It is not wanted any more. */
  leave(): void {
    this.#wanted = undefined
    this.#left?.resolve()
    this.#left = undefined
  }

  get #isReached(): boolean {
    return this.#isTurnComplete || (this.#asks.size > 0 && this.#asks.size === this.#calls.size)
  }

  /** A call that the client makes waits as one that has asked. */
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
