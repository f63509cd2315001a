/** The course of a synthetic run. The run's prompt holds it as JSON. */
export type Script =
  /**
   * One event, and from `startAt` (epoch ms) on as many as its reader accepts, `perTurn` events per loop turn; `done` after
   * `count` of them, if given.
   */
  | { mode: 'flood'; perTurn: number; startAt: number; count?: number; hasLongJournal?: boolean }
  /** One event with a timestamp each `everyMs`. */
  | { mode: 'paced'; everyMs: number }
  /** `turn_start`, and `done` in the next loop turn. */
  | { mode: 'once' }
  /** Only `turn_start`. */
  | { mode: 'idle' }

export const readScript = (prompt: string): Script => JSON.parse(prompt) as Script

/**
 * A flood in which all streams together produce about 200 events per loop turn: 200, 4 and 1 each for 1, 50 and 500 streams.
 * A single stream would exceed the 4,096 events of its journal in any pause of the gateway: see `LONG_JOURNAL`.
 */
export const floodOf = (streams: number): Extract<Script, { mode: 'flood' }> => ({
  mode: 'flood',
  perTurn: Math.max(1, Math.floor(200 / streams)),
  startAt: Date.now() + OPENING_MS + streams,
  hasLongJournal: streams === 1,
})

/** Time until a flood has run for `ms`. */
export const untilFlowing = ({ startAt }: { startAt: number }, ms: number): number =>
  Math.max(0, startAt + ms - Date.now())

/** With one more millisecond for each stream, all are open when the flood begins. */
const OPENING_MS = 150
