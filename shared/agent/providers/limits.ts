import type { ByteLimits } from './stream-meter.ts'

export type ModelLimits = ByteLimits & {
  connectMs: number
  /** The time from the call to the first byte of the response's body. */
  firstByteMs: number
  /** The time between two chunks. It runs only while a read is pending, so that a slow reader does not look like a silent provider. */
  idleMs: number
  turnMs: number
  /** The time from the model's finish reason to the end of the response, in which token counts may follow. Comments do not prolong it. */
  finishMs: number
}

export const MODEL_LIMITS: ModelLimits = {
  connectMs: 5_000,
  firstByteMs: 300_000,
  idleMs: 300_000,
  turnMs: 600_000,
  finishMs: 2_000,
  maxTurnBytes: 32 * 1024 * 1024,
  maxEventBytes: 1024 * 1024,
}

/** Why a call was ended on our side: an exceeded limit, or a response that is no event stream. */
export type Breach = 'first_byte' | 'idle' | 'turn' | 'turn_bytes' | 'event_bytes' | 'not_utf8' | 'web_page'
