import { type Chunk, isThere, parseChunk } from './chunk.ts'

/** After so many attempts without a use a server is one whose chunks all differ, as OpenAI's own do by their padding. */
const MAX_ATTEMPTS = 4

/** An answer of a few words is over before it would pay. */
const FIRST_CHUNKS = 8

/** A longer one is nothing that is sent for each word, and could hold its text a thousand times. */
const MAX_CHUNK_CHARS = 2_048

/** What no model says. */
const PROBE = '\u0000\u2063probe'

/**
 * Most servers send chunk after chunk that differ in nothing but their text. What stands around it is learnt from one that
 * has been parsed: a chunk that begins and ends with the same characters, with one JSON string between them, means the same
 * with another text. Parsing a chunk whole costs four times as much.
 */
export class TextTemplate {
  #head = ''
  #tail = ''
  #attempts = 0
  #chunks = 0

  /** The text of a chunk of the known form. */
  textOf(data: string): string | undefined {
    const [from, to] = [this.#head.length, data.length - this.#tail.length]
    // Not `startsWith`: for a piece of a longer text, as these are, it costs ten times as much.
    if (from === 0 || to <= from || data.slice(0, from) !== this.#head || data.slice(to) !== this.#tail)
      return undefined
    const text = parseString(data.slice(from, to))
    if (text !== undefined) this.#attempts = 0
    return text
  }

  /** Learns the form of a chunk that says a text and nothing else. */
  learn(data: string, chunk: Chunk): void {
    if (++this.#chunks <= FIRST_CHUNKS || this.#attempts >= MAX_ATTEMPTS) return
    const text = data.length > MAX_CHUNK_CHARS ? undefined : onlyTextOf(chunk)
    if (text === undefined) return
    this.#attempts++
    const literal = JSON.stringify(text)
    const field = /"content": ?/g
    while (field.exec(data) !== null) {
      const [head, rest] = [data.slice(0, field.lastIndex), data.slice(field.lastIndex)]
      if (rest.startsWith(literal) && this.#isForm(head, rest.slice(literal.length))) return
    }
  }

  #isForm(head: string, tail: string): boolean {
    const probe = parseChunk(head + JSON.stringify(PROBE) + tail)
    if (!probe || onlyTextOf(probe) !== PROBE) return false
    this.#head = copy(head)
    this.#tail = copy(tail)
    return true
  }
}

/** A piece of a text keeps the whole of it in memory. */
const copy = (text: string) => Buffer.from(text).toString()

function onlyTextOf({ error, usage, choices }: Chunk): string | undefined {
  const [{ delta, finish_reason: reason } = {}] = choices
  if (!delta || isThere(error) || isThere(usage) || isThere(reason)) return undefined
  const { content, refusal, reasoning_content: own, reasoning, tool_calls: calls } = delta
  if ([refusal, own, reasoning, calls].some(isThere)) return undefined
  return typeof content === 'string' && content !== '' ? content : undefined
}

function parseString(json: string): string | undefined {
  try {
    const text: unknown = JSON.parse(json)
    return typeof text === 'string' ? text : undefined
  } catch {
    return undefined
  }
}
