import type { CallPart } from '../providers/failures/retry.ts'
import type { CountedUsage, ModelRequest, Usage } from '../providers/port.ts'
import { charsOf, fixedChars, tokensOf } from './context/size.ts'
import { estimateUsage, wholeUsage } from './usage.ts'

/**
 * Counts the usage of one model call from its parts. Runs and budgets both use it, so that they show the same (D4.10). Usage that the
 * provider has not reported, as for an answer that is cut off, is estimated; an answer that had not begun costs nothing.
 */
export class CallCount {
  #counted: CountedUsage | undefined
  #outputChars = 0
  #hasBegun = false

  note(part: CallPart): void {
    switch (part.type) {
      case 'failure':
      case 'warning':
      case 'served_by':
      case 'abandoned':
        return
      case 'finish':
        this.#counted = part.usage
        break
      case 'text_delta':
      case 'thinking_delta':
        this.#outputChars += part.text.length
        break
      case 'tool_call':
        this.#outputChars += part.input.length
        break
      case 'text_end':
      case 'thinking_end':
    }
    this.#hasBegun = true
  }

  /** `undefined` when the call costs nothing. */
  usageOf(request: CountedRequest): Usage | undefined {
    if (!this.#hasBegun) return undefined
    return wholeUsage(this.#counted, estimateUsage(tokensIn(request), this.#outputChars))
  }
}

type CountedRequest = Pick<ModelRequest, 'system' | 'messages' | 'tools'>

/** Estimates the tokens of a request. */
export const tokensIn = ({ system, messages, tools }: CountedRequest): number =>
  tokensOf(fixedChars({ systemPrompt: system, background: undefined, tools }) + charsOf(messages))
