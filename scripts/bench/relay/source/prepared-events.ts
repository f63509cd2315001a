import type { AgentEvent } from '../../../../shared/kernel/events.ts'

/** The size of every measured event on the wire. */
export const FRAME_BYTES = 112
/** `id: `, `event: text_delta`, `data: {"text":"`, `"}` and all line feeds. */
const FRAME_BYTES_AROUND = 42
const STAMP_CHARS = 20
const MAX_DIGITS = 10

/** The offset of the timestamp in a frame whose id has `digits` digits. */
export const stampAt = (digits: number): number => FRAME_BYTES_AROUND - '"}\n\n'.length + digits
export const STAMP_END = STAMP_CHARS

const textBytes = (digits: number): number => FRAME_BYTES - FRAME_BYTES_AROUND - digits

const PREPARED: readonly AgentEvent[] = Array.from({ length: MAX_DIGITS + 1 }, (_, digits) => ({
  type: 'text_delta',
  text: 'x'.repeat(textBytes(digits)),
}))

/** Precomputed events of one stream: each becomes a frame of 112 bytes, whatever its id. */
export class PreparedEvents {
  #seq = 0
  #digits = 1
  #isWiderAt = 10

  next(): AgentEvent {
    this.#count()
    return PREPARED[this.#digits] ?? PREPARED[MAX_DIGITS] ?? DONE
  }

  /** An event with the time of its creation, by a clock that all processes of the machine share. */
  stamped(): AgentEvent {
    this.#count()
    const stamp = String(process.hrtime.bigint()).padStart(STAMP_CHARS, '0')
    return { type: 'text_delta', text: stamp.padEnd(textBytes(this.#digits), 'x') }
  }

  #count(): void {
    this.#seq++
    if (this.#seq < this.#isWiderAt) return
    this.#digits++
    this.#isWiderAt *= 10
  }
}

export const TURN_START: AgentEvent = { type: 'turn_start', turn_number: 1, model: 'bench' }

export const DONE: AgentEvent = {
  type: 'done',
  total_input_tokens: 1,
  total_output_tokens: 1,
  total_tokens: 2,
  cost_usd: 0,
  turn_count: 1,
  stop_reason: 'end_turn',
}
