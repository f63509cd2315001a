import { type ReaderFailure, readerFailure } from '../../../../shared/cluster/journal/frames.ts'
import type { FlowEvent } from '../../../../shared/kernel/events.ts'
import type { Numbered } from '../../streams/run-events.ts'
import type { Projection } from '../shared/projection.ts'
import {
  type ChatChunk,
  type ChatOptions,
  chatChunk,
  errorChunk,
  failureChunk,
  lastChunks,
  usageOf,
} from './chat-projection.ts'

/** The chunks of a flow's answer: its output as JSON, in one piece. */
export class FlowProjection implements Projection<ChatChunk, FlowEvent> {
  readonly #options: ChatOptions
  readonly #unfit: string
  #used = { total_input_tokens: 0, total_output_tokens: 0, total_tokens: 0 }

  /** `unfit` is the error message for an output that does not fit the client's schema. */
  constructor(options: ChatOptions, unfit: string) {
    this.#options = options
    this.#unfit = unfit
  }

  begin(): ChatChunk[] {
    return [chatChunk(this.#options, { role: 'assistant', content: '' })]
  }

  take({ event }: Numbered<FlowEvent>): ChatChunk[] {
    switch (event.type) {
      case 'progress':
        this.#count(event)
        return []
      case 'result':
        if (event.verdict !== 'ok') return [failureChunk(this.#unfit)]
        return [
          chatChunk(this.#options, { content: JSON.stringify(event.output) }),
          ...lastChunks(this.#options, usageOf(this.#used)),
        ]
      case 'error':
        return [errorChunk(event)]
      case 'started':
      case 'warning':
        return []
    }
  }

  cut(code: ReaderFailure): ChatChunk[] {
    return [errorChunk(readerFailure(code))]
  }

  /** Adds the tokens of one turn, which a `progress` event contains. */
  #count({ input_tokens: input, output_tokens: output }: Extract<FlowEvent, { type: 'progress' }>): void {
    const { total_input_tokens: before, total_output_tokens: said, total_tokens: total } = this.#used
    this.#used = {
      total_input_tokens: before + input,
      total_output_tokens: said + output,
      total_tokens: total + input + output,
    }
  }
}
