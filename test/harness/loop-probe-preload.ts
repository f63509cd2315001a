import { writeSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'
import { collectGarbage } from '../../scripts/bench/garbage.ts'

/**
 * Node loads this module into the product's process before the product (`node --import`). It writes JSON lines
 * to stderr: `{"stall"}` when the event loop was blocked for 50 ms or longer, and `{"heap"}` on SIGUSR2, with the bytes of
 * heap and buffers in use after two garbage collections.
 */
const EVERY_MS = 10
const REPORT_FROM_MS = 50
const STDERR = 2
const SETTLE_MS = 100
const US_PER_MS = 1000

if (isMainThread) {
  watchLoop()
  process.on('SIGUSR2', reportHeap)
}

function watchLoop(): void {
  let last = performance.now()
  let usedMs = threadMs()
  setInterval(() => {
    const now = performance.now()
    const used = threadMs()
    const ms = now - last - EVERY_MS
    // CPU time of this thread during the stall. The rest of the stall was spent waiting for a CPU.
    const busyMs = Math.min(ms, used - usedMs)
    if (ms >= REPORT_FROM_MS) report({ stall: { ms, busyMs, until: performance.timeOrigin + now } })
    last = now
    usedMs = used
  }, EVERY_MS).unref()
}

function threadMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / US_PER_MS
}

/** The second collection frees what the first one has found in finalizers and the buffers that another thread was still freeing. */
function reportHeap(): void {
  collectGarbage()
  setTimeout(() => {
    collectGarbage()
    setTimeout(() => {
      const { heapUsed, arrayBuffers } = process.memoryUsage()
      report({ heap: heapUsed + arrayBuffers })
    }, SETTLE_MS)
  }, SETTLE_MS)
}

function report(line: object): void {
  writeSync(STDERR, `${JSON.stringify(line)}\n`)
}
