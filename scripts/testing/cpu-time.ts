import { readFileSync } from 'node:fs'

/** Linux counts the CPU time of a process in hundredths of a second. */
const TICKS_PER_SECOND = 100

/** The CPU seconds that this process, and the children that have ended, have used. 0 where there is no /proc. */
export function cpuSeconds(): number {
  const { own, children } = readTimes()
  return own + children
}

/** The CPU seconds of the children that have ended, theirs included. 0 where there is no /proc. */
export const cpuSecondsOfChildren = (): number => readTimes().children

function readTimes(): { own: number; children: number } {
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8')
    // The second field is the name in brackets, which may contain blanks. utime, stime, cutime and cstime are the fields 14 to 17.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [user = 0, system = 0, childrenUser = 0, childrenSystem = 0] = fields
      .slice(11, 15)
      .map((ticks) => Number(ticks) / TICKS_PER_SECOND)
    return { own: user + system, children: childrenUser + childrenSystem }
  } catch {
    return { own: 0, children: 0 }
  }
}
