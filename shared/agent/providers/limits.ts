import type { ByteLimits } from './stream-meter.ts'

export type ModelLimits = ByteLimits & {
  connectMs: number
  /** From the call to the first byte of the response's body. */
  firstByteMs: number
  /** Between two chunks. Counts only while a read is pending, so that a slow reader is not taken for a silent provider. */
  idleMs: number
  turnMs: number
  /** From the model's finish reason to the end of the response: token counts may follow. Comments do not prolong it. */
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
