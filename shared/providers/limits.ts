import type { ByteCaps } from './stream-meter.ts'

export type ModelLimits = ByteCaps & {
  connectMs: number
  /** From the call to the first byte of the answer's body. */
  firstByteMs: number
  /** Between two chunks; it counts only while we ask for bytes, so that a slow reader is not the provider's fault. */
  idleMs: number
  turnMs: number
}

/** reliability.md 2.1 "T_prov" and 2.2 "Provider". */
export const MODEL_LIMITS: ModelLimits = {
  connectMs: 5_000,
  firstByteMs: 60_000,
  idleMs: 60_000,
  turnMs: 600_000,
  maxTurnBytes: 32 * 1024 * 1024,
  maxEventBytes: 1024 * 1024,
}

/** Which limit ended a call. */
export type Breach = 'first_byte' | 'idle' | 'turn' | 'turn_bytes' | 'event_bytes' | 'not_utf8' | 'web_page'
