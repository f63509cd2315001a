import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'

const MS_PER_TICK = 10

/**
 * How much of the machine others take meanwhile, hypervisor included, as a part of 1: four processes that wait for each other
 * lose more by it than the two of a baseline, so a figure of a busy time says little. Ours count once they have ended.
 */
export function watchForeignLoad(): () => number {
  const start = performance.now()
  const before = foreignMs()
  return () => (foreignMs() - before) / ((performance.now() - start) * availableParallelism())
}

/** proc(5): user, nice, system and steal of the machine, without this process and the children that it has reaped. */
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
