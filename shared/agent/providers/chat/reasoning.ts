import type { JsonObject } from '../../../kernel/events.ts'
import { isJsonObject } from '../../../kernel/json.ts'

/** The fields of a reasoning detail that arrive in pieces. */
const PIECES = ['text', 'summary'] as const

/**
 * Collects `reasoning_details`, OpenRouter's form of thinking: texts, summaries and encrypted blocks, with the signatures that some
 * models require back. Pieces of one block are merged.
 */
export class ReasoningDetails {
  readonly #details: JsonObject[] = []

  /** Adds the details of a chunk and returns their text. */
  add(details: unknown): string {
    const added = Array.isArray(details) ? details.filter(isJsonObject) : []
    for (const detail of added) this.#addOne(detail)
    return added.map(textOf).join('')
  }

  get all(): readonly JsonObject[] {
    return this.#details
  }

  #addOne(detail: JsonObject): void {
    const last = this.#details.at(-1)
    if (last && continues(last, detail)) merge(last, detail)
    else this.#details.push({ ...detail })
  }
}

const continues = (last: JsonObject, detail: JsonObject): boolean =>
  last['type'] === detail['type'] && last['index'] === detail['index'] && !('data' in detail)

function merge(last: JsonObject, detail: JsonObject): void {
  for (const [name, value] of Object.entries(detail)) {
    const isPiece = PIECES.some((piece) => piece === name) && typeof value === 'string'
    if (isPiece) last[name] = `${typeof last[name] === 'string' ? last[name] : ''}${value}`
    else if (value !== null && value !== undefined) last[name] = value
  }
}

const textOf = (detail: JsonObject): string =>
  PIECES.map((piece) => detail[piece])
    .filter((text) => typeof text === 'string')
    .join('')
