import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'

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

/** User, nice, system and steal time of the machine (proc(5)), without this process and its ended children. */
function foreignMs(): number {
  const [user = 0, nice = 0, system = 0, , , , , steal = 0] = numbers(
    readFileSync('/proc/stat', 'latin1').split('\n')[0],
  )
  const own = readFileSync('/proc/self/stat', 'latin1')
  const fields = numbers(own.slice(own.lastIndexOf(')') + 3))
  const ours = fields.slice(9, 13).reduce((sum, ticks) => sum + ticks, 0)
  return (user + nice + system + steal - ours) * MS_PER_TICK
}

const numbers = (line = ''): number[] => line.trim().split(/\s+/).slice(1).map(Number)
