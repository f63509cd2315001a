import { parseJson } from '../../../kernel/json.ts'
import { type Chunk, isPresent, parseChunk } from './chunk.ts'

/** Learning stops after this many unused templates in a row: some servers vary every chunk, as OpenAI does with its padding. */
const MAX_ATTEMPTS = 4

/** Chunks that are only parsed: for a short answer, learning costs more than it saves. */
const FIRST_CHUNKS = 8

/** Longer chunks are not learned: providers do not send them word by word, and their text could occur in them many times. */
const MAX_CHUNK_CHARS = 2_048

/** A text that no model writes. */
const PROBE = '\u0000\u2063probe'

/**
 * Reads the text of chunks without parsing the whole chunk, which would cost four times as much. Most servers send chunks that
 * differ in their text only. From a parsed chunk the template learns the characters before and after the text: a chunk with
 * the same characters around one JSON string differs in that text only.
 */
export class TextTemplate {
  #head = ''
  #tail = ''
  #attempts = 0
  #chunks = 0

  /** The text of a chunk that matches the template, else `undefined`. */
  textOf(data: string): string | undefined {
    const [from, to] = [this.#head.length, data.length - this.#tail.length]
    // Not `startsWith`: it costs ten times as much when `data` is a slice of a longer text, as here.
    if (from === 0 || data.slice(0, from) !== this.#head || data.slice(to) !== this.#tail) return undefined
    const text = parseJson(data.slice(from, to))
    if (typeof text !== 'string') return undefined
    this.#attempts = 0
    return text
  }

  /** Learns from a chunk that contains only a text. */
  learn(data: string, chunk: Chunk): void {
    if (++this.#chunks <= FIRST_CHUNKS || this.#attempts >= MAX_ATTEMPTS) return
    const text = data.length > MAX_CHUNK_CHARS ? undefined : onlyTextOf(chunk)
    if (text === undefined) return
    this.#attempts++
    const literal = JSON.stringify(text)
    const field = /"content": ?/g
    while (field.exec(data) !== null) {
      const [head, rest] = [data.slice(0, field.lastIndex), data.slice(field.lastIndex)]
      if (rest.startsWith(literal) && this.#adopt(head, rest.slice(literal.length))) return
    }
  }

  /** Adopts the template when a chunk built from it parses as a chunk with just its text. */
  #adopt(head: string, tail: string): boolean {
    const probe = parseChunk(head + JSON.stringify(PROBE) + tail)
    if (!probe || onlyTextOf(probe) !== PROBE) return false
    this.#head = copy(head)
    this.#tail = copy(tail)
    return true
  }
}

/** Copies a slice: the slice itself would keep the whole text in memory. */
const copy = (text: string) => Buffer.from(text).toString()

function onlyTextOf({ error, usage, choices }: Chunk): string | undefined {
  const [{ delta, finish_reason: reason, usage: own } = {}] = choices
  if (!delta || [error, usage, own, reason].some(isPresent)) return undefined
  const { content, refusal, reasoning_content, reasoning, reasoning_details, tool_calls } = delta
  if ([refusal, reasoning_content, reasoning, reasoning_details, tool_calls].some(isPresent)) return undefined
  return typeof content === 'string' && content !== '' ? content : undefined
}
