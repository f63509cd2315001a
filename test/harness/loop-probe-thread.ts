import { writeSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

/**
 * Loaded into the product's process before the product (`node --expose-gc --import`). Tells on stderr, one JSON line each:
 * `{"stall"}` when the event loop was held up, and `{"heap"}`, what is in use after a garbage collection, buffers included, on SIGUSR2.
 */
const EVERY_MS = 10
const TELL_FROM_MS = 50
const STDERR = 2
const US_PER_MS = 1000

if (isMainThread) {
  watchLoop()
  process.on('SIGUSR2', tellHeap)
}

function watchLoop(): void {
  let last = performance.now()
  let usedMs = threadMs()
  setInterval(() => {
    const now = performance.now()
    const used = threadMs()
    const ms = now - last - EVERY_MS
    // What the thread computed meanwhile: the rest of a stall is the machine's, which had something else to do.
    const busyMs = Math.min(ms, used - usedMs)
    if (ms >= TELL_FROM_MS) tell({ stall: { ms, busyMs, until: performance.timeOrigin + now } })
    last = now
    usedMs = used
  }, EVERY_MS).unref()
}

function threadMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / US_PER_MS
}

function tellHeap(): void {
  globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  tell({ heap: heapUsed + arrayBuffers })
}

function tell(said: object): void {
  writeSync(STDERR, `${JSON.stringify(said)}\n`)
}
