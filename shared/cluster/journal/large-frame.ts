import type { RunEvent } from '../../kernel/events.ts'
import { frameJson } from '../../kernel/json.ts'

/** An event with a text above this size is large. */
const LARGE_CHARS = 64 * 1024
const PIECE_CHARS = 16 * 1024

/** A part of a frame: finished JSON, or the content of a JSON string that is not escaped yet. */
type Segment = { text: string; isRaw: boolean }

/**
 * The frame of a large event. It keeps the event's own texts and renders each piece of about 16 KiB when it is read, so that neither
 * the whole frame nor a second copy of the texts is ever in memory. A piece is not parsed on its own: only all of them make a frame.
 */
export class LargeFrame {
  readonly #segments: readonly Segment[]
  /** Size in characters. */
  readonly length: number

  constructor(seq: number, event: RunEvent) {
    this.#segments = segmentsOf(seq, event)
    this.length = this.#segments.reduce((sum, { text }) => sum + text.length, 0)
  }

  get pieceCount(): number {
    return Math.ceil(this.length / PIECE_CHARS)
  }

  /** Renders piece number `index`, from 0. It is the same at each call. */
  piece(index: number): Buffer {
    const from = index * PIECE_CHARS
    let start = 0
    let rendered = ''
    for (const { text, isRaw } of this.#segments) {
      const slice = text.slice(cutAt(text, from - start), cutAt(text, from + PIECE_CHARS - start))
      rendered += isRaw ? slice : frameJson(slice).slice(1, -1)
      start += text.length
    }
    return Buffer.from(rendered)
  }
}

export function isLarge(event: RunEvent): boolean {
  for (const name in event) {
    const value: unknown = event[name as keyof RunEvent]
    if (typeof value === 'string' && value.length > LARGE_CHARS) return true
  }
  return false
}

function segmentsOf(seq: number, { type, ...fields }: RunEvent): Segment[] {
  const segments: Segment[] = []
  let raw = `id: ${seq}\nevent: ${type}\ndata: {`
  let separator = ''
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue
    raw += `${separator}${JSON.stringify(name)}:`
    separator = ','
    if (typeof value === 'string') {
      segments.push({ text: `${raw}"`, isRaw: true }, { text: value, isRaw: false })
      raw = '"'
    } else raw += typeof value === 'object' && value !== null ? frameJson(value) : JSON.stringify(value)
  }
  segments.push({ text: `${raw}}\n\n`, isRaw: true })
  return segments
}

/** The nearest place inside the text that does not cut a character in two. */
function cutAt(text: string, wanted: number): number {
  const at = Math.min(Math.max(wanted, 0), text.length)
  const isInside = (text.codePointAt(at - 1) ?? 0) > 0xffff // Two units.
  return isInside ? at + 1 : at
}
