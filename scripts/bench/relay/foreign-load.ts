import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { machineCpuMs } from '../proc.ts'

const MS_PER_TICK = 10

/**
 * Starts measuring the share (0 to 1) of the machine's CPU that other processes use, hypervisor included. The relay's four
 * processes wait for each other and lose more to foreign load than the two of a baseline, so that a figure measured under
 * load says little. Child processes of the bench are subtracted when they have ended.
 */
export function watchForeignLoad(): () => number {
  const start = performance.now()
  const before = foreignMs()
  return () => (foreignMs() - before) / ((performance.now() - start) * availableParallelism())
}

/** CPU time of the machine (proc(5)), without this process and its ended children. */
function foreignMs(): number {
  const own = readFileSync('/proc/self/stat', 'latin1')
  const fields = own
    .slice(own.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 15)
  return machineCpuMs() - fields.reduce((sum, ticks) => sum + Number(ticks), 0) * MS_PER_TICK
}
