const TICK_MS = 10
/** What one tick counts at most: a process that gets no CPU for a second has not waited for a second. */
const MAX_TICK_MS = 50

let countedMs = 0
let lastTick = performance.now()

setInterval(() => {
  countedMs += sinceTickMs()
  lastTick = performance.now()
}, TICK_MS).unref()

const sinceTickMs = () => Math.min(performance.now() - lastTick, MAX_TICK_MS)

/**
 * A clock in ms that runs only while this process gets its share of the CPU, so that a bound on a wait does not depend on what else the machine does.
 * It does not measure work that blocks the event loop: `cpuMs` does.
 */
export const elapsedMs = (): number => countedMs + sinceTickMs()
