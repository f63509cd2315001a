import { createHook } from 'node:async_hooks'
import { renameSync, writeFileSync } from 'node:fs'
import { GCProfiler, type GCProfilerResult } from 'node:v8'

/**
 * Counts what a process allocates and how many promises it makes; imported ahead of its program. At each SIGUSR2 it writes both as JSON to the file COUNTS. It begins to
 * count promises at the first signal and ends to count bytes at the second, because a hook that sees promises allocates for each.
 */
export type Counts = { bytes: number; promises: number }

const file = process.env['COUNTS'] ?? 'counts.json'
let profiler: GCProfiler | undefined
let heapAtStart = 0
let promises = 0
const hook = createHook({
  init(_id, type) {
    if (type === 'PROMISE') promises += 1
  },
})

process.on('SIGUSR2', () => {
  const bytes = profiler ? allocated(profiler.stop()?.statistics ?? []) : 0
  if (profiler) hook.enable()
  else {
    profiler = new GCProfiler()
    profiler.start()
  }
  heapAtStart = process.memoryUsage().heapUsed
  writeFileSync(`${file}.new`, JSON.stringify({ bytes, promises } satisfies Counts))
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
