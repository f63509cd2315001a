import { signal } from '@preact/signals'
import { ApiError, RunFailed } from '../../../../../shared/client/errors.ts'
import { createFlows, type FlowRun as FlowRunRequest } from '../../../../../shared/client/resources/flows.ts'
import { send, transport } from '../../../api/engine.ts'
import { announce } from '../../../base/announce.ts'
import { EMPTY_FLOW, type FlowView, reduceFlow } from './flow-view.ts'

/** A run of a flow that is started and followed from here. */
export class FlowRun {
  readonly view = signal<FlowView>(EMPTY_FLOW)
  /** Why it did not start, or is not followed any more. */
  readonly refusal = signal<ApiError | Error | undefined>(undefined)
  readonly isOver = signal(false)
  /** Once the server has taken it: one with a deadline may wait for long before its first event. */
  readonly id = signal<string | undefined>(undefined)
  readonly startedAt = new Date().toISOString()
  readonly request: FlowRunRequest
  readonly #name: string
  readonly #abort = new AbortController()

  constructor(name: string, request: FlowRunRequest) {
    this.#name = name
    this.request = request
  }

  /** Reads to the end. Never rejects. */
  async follow(): Promise<void> {
    try {
      await createFlows(transport()).run(this.#name, this.request, {
        signal: this.#abort.signal,
        onStart: (id) => void (this.id.value = id),
        onEvent: (event) => void (this.view.value = reduceFlow(this.view.peek(), event)),
      })
    } catch (cause) {
      if (!(cause instanceof RunFailed) && !this.#abort.signal.aborted)
        this.refusal.value = cause instanceof Error ? cause : new Error(String(cause))
    }
    this.isOver.value = true
    announce(this.view.peek().result?.verdict === 'ok' ? 'The flow has answered' : 'The flow has ended')
  }

  /** Ends the flow itself; its stream then says so. */
  async cancel(): Promise<void> {
    await send('DELETE', `/runs/${this.id.peek()}`)
  }

  /** Stops reading. */
  leave(): void {
    this.#abort.abort()
  }
}

/** The place of the input that a refusal names, as a pointer into it. */
export function pointerIntoInput(refusal: Error | undefined): string | undefined {
  const param = refusal instanceof ApiError ? refusal.param : undefined
  return param?.startsWith('/input/') ? param.slice('/input'.length) : undefined
}
