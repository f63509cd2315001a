/** A kill, where both times are the same, or a freeze, or a time without Redis. Times are those of one clock, in milliseconds. */
export type Fault = { from: number; until: number }
