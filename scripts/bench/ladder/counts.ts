import { createHook } from 'node:async_hooks'
import { renameSync, writeFileSync } from 'node:fs'
import { GCProfiler, type GCProfilerResult } from 'node:v8'

/**
 * Counts what a process allocates and how many promises it makes; imported ahead of its program. At each SIGUSR2 it writes both as JSON to the file COUNTS, as they
 * are since the last signal. It counts promises from the third signal on. Ignore the bytes from then on: the hook that counts promises allocates memory for each of them.
 */
export type Counts = { bytes: number; promises: number }

const file = process.env['COUNTS'] ?? 'counts.json'
let profiler = new GCProfiler()
let heapAtStart = 0
let signals = 0
let promises = 0
const hook = createHook({
  init(_id, type) {
    if (type === 'PROMISE') promises += 1
  },
})

process.on('SIGUSR2', () => {
  const bytes = allocated(profiler.stop()?.statistics ?? [])
  writeFileSync(`${file}.new`, JSON.stringify({ bytes, promises } satisfies Counts))
  signals += 1
  if (signals === 3) hook.enable()
  promises = 0
  profiler = new GCProfiler()
  profiler.start()
  heapAtStart = process.memoryUsage().heapUsed
  renameSync(`${file}.new`, file)
})

/** The heap grows from the end of one collection to the begin of the next, and from the last one until now. */
function allocated(collections: GCProfilerResult['statistics']): number {
  let bytes = 0
  let heapUsed = heapAtStart
  for (const { beforeGC, afterGC } of collections) {
    bytes += beforeGC.heapStatistics.usedHeapSize - heapUsed
    heapUsed = afterGC.heapStatistics.usedHeapSize
  }
  return bytes + process.memoryUsage().heapUsed - heapUsed
}
