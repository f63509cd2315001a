/** What a synthetic run does; it stands in the run's prompt as JSON. */
export type Script =
  /**
   * One event, and from `startAt` (epoch ms) on as fast as its reader takes them, `perTurn` events a loop turn; `done` behind
   * `count` of them, if given.
   */
  | { mode: 'flood'; perTurn: number; startAt: number; count?: number; hasLongJournal?: boolean }
  /** One stamped event each `everyMs`. */
  | { mode: 'paced'; everyMs: number }
  /** `turn_start`, and `done` a loop turn later. */
  | { mode: 'once' }
  /** `turn_start`, and then nothing. */
  | { mode: 'idle' }

export const readScript = (prompt: string): Script => JSON.parse(prompt) as Script

/**
 * So that all streams together make some 200 events a loop turn, as in performance.md: 200, 4 and 1 for 1, 50 and 500. A single
 * one outruns the 4,096 events of its journal within any pause of the gateway: see `LONG_JOURNAL`.
 */
export const floodOf = (streams: number): Extract<Script, { mode: 'flood' }> => ({
  mode: 'flood',
  perTurn: Math.max(1, Math.floor(200 / streams)),
  startAt: Date.now() + OPENING_MS + streams,
  hasLongJournal: streams === 1,
})

/** How long until a flood has run for `ms`. */
export const untilFlowing = ({ startAt }: { startAt: number }, ms: number): number =>
  Math.max(0, startAt + ms - Date.now())

/** And one for each stream: all are open when the first begins. */
const OPENING_MS = 150
