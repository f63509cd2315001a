import { isDeepStrictEqual } from 'node:util'
import { parseJson } from '../../kernel/json.ts'

/** Longer inputs are not parsed after each piece: that would take too long. */
const MAX_CHECKED_CHARS = 64 * 1024

/**
 * The input of a tool call, from its pieces. Most servers send only new text in each piece. Some send the whole input so far in
 * each piece, or once more in the last one: such a piece replaces the earlier ones if all pieces together are no JSON.
 */
export class CallInput {
  #joined = ''
  #latest = ''

  add(piece: string): void {
    const isRepetition = this.#latest !== '' && (piece.startsWith(this.#latest) || this.beginsAnew(piece))
    this.#joined += piece
    this.#latest = isRepetition ? piece : this.#latest + piece
  }

  /** Whether the input so far is complete and the piece begins a new one. */
  beginsAnew(piece: string): boolean {
    return /^\s*[{[]/.test(piece) && isComplete(this.#latest)
  }

  get text(): string {
    return isJson(this.#joined) || !isJson(this.#latest) ? this.#joined : this.#latest
  }
}

export const isJson = (text: string): boolean => parseJson(text) !== undefined

const isComplete = (input: string): boolean =>
  input.length <= MAX_CHECKED_CHARS && /[}\]]\s*$/.test(input) && isJson(input)

type SentCall = { id: string; toolName: string; input: string }

/**
 * Whether a server sent one call twice: equal ids mean the same call, unless both are complete and differ, because some servers give
 * every call of an answer the same id.
 */
export function isSameCall(one: SentCall, other: SentCall): boolean {
  if (one.id === '' || one.id !== other.id) return false
  if (one.toolName !== '' && other.toolName !== '' && one.toolName !== other.toolName) return false
  const inputs = [one, other].map(({ input }) => parseJson(input))
  return inputs.includes(undefined) || isDeepStrictEqual(inputs[0], inputs[1])
}
