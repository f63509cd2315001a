import { FRAME_BYTES } from '../source/prepared-events.ts'

const [LF, LETTER_I, ZERO] = [10, 105, 48]
const ID_AT = 'id: '.length
const PIECE_BYTES = 512
/** The comment lines before a frame. */
const COMMENTS = /^(?::.*(?:\n|$))+/

/** Receives the position of a complete event and the number of digits of its id. */
export type OnEvent = (bytes: Buffer, at: number, digits: number) => void

/**
 * Counts the events of one stream and checks by their ids that each came once and in order. Complete events of the measured
 * size are read in place; split ones and other frames are assembled as text.
 */
export class FrameChecker {
  events = 0
  lost = 0
  /** Events that came twice or after a later one. */
  repeated = 0
  /** Name of the last event that was not `text_delta`. */
  lastEvent = ''
  onEvent: OnEvent | undefined
  #expected = 1
  #rest = ''

  read(bytes: Buffer, from: number, to: number): void {
    let at = from
    while (at < to)
      at = this.#rest === '' && isWhole(bytes, at, to) ? this.#readEvent(bytes, at) : this.#piece(bytes, at, to)
  }

  #readEvent(bytes: Buffer, at: number): number {
    let seq = 0
    let digits = 0
    for (let byte = bytes[at + ID_AT] ?? LF; byte !== LF; byte = bytes[at + ID_AT + digits] ?? LF) {
      seq = seq * 10 + byte - ZERO
      digits++
    }
    this.#count(seq)
    this.onEvent?.(bytes, at, digits)
    return at + FRAME_BYTES
  }

  #piece(bytes: Buffer, at: number, to: number): number {
    const known = this.#rest.length
    const text = this.#rest + bytes.toString('latin1', at, Math.min(to, at + PIECE_BYTES))
    const end = text.indexOf('\n\n')
    if (end < 0) {
      this.#rest = text
      return at + text.length - known
    }
    this.#rest = ''
    const frame = text.slice(0, end).replace(COMMENTS, '')
    if (frame !== '') this.#readText(frame)
    return at + end + 2 - known
  }

  #readText(frame: string): void {
    const [, id, event = ''] = /^id: (\d+)\nevent: (\w+)\n/.exec(frame) ?? []
    if (event !== 'text_delta') this.lastEvent = event
    // A gateway's own error event repeats the id of the last event.
    if (event !== 'error') this.#count(Number(id))
  }

  #count(seq: number): void {
    this.events++
    if (seq === this.#expected) {
      this.#expected++
    } else if (seq > this.#expected) {
      this.lost += seq - this.#expected
      this.#expected = seq + 1
    } else this.repeated++
  }
}

const isWhole = (bytes: Buffer, at: number, to: number): boolean =>
  to - at >= FRAME_BYTES &&
  bytes[at] === LETTER_I &&
  bytes[at + FRAME_BYTES - 1] === LF &&
  bytes[at + FRAME_BYTES - 2] === LF
