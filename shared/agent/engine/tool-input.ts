import type { JsonObject } from '../../kernel/events.ts'
import { fitsDepth, isJsonObject, parseJson } from '../../kernel/json.ts'
import { truncate } from '../../kernel/text.ts'

/** Rendering a deeper input as JSON for the client would overflow the stack. */
export const MAX_INPUT_DEPTH = 64

/** Characters of malformed arguments that the history keeps. */
const MAX_INVALID_CHARS = 4_000

/** Parses the input of a tool call. Models send an empty text for a call without arguments. */
export function parseInput(text: string): JsonObject | undefined {
  if (text.trim() === '') return {}
  const value = parseJson(text)
  return isJsonObject(value) && fitsDepth(value, MAX_INPUT_DEPTH) ? value : undefined
}

/** The input as clients and the model see it. Malformed arguments stay visible, so that the model finds its mistake. */
export const visibleInput = (text: string): JsonObject =>
  parseInput(text) ?? { invalid_arguments: truncate(text, MAX_INVALID_CHARS) }

/** Whether the output limit may have cut this input. An empty input may be the beginning of any input. */
export const isPossiblyCut = (text: string): boolean => Object.keys(parseInput(text) ?? {}).length === 0
