import { readFileSync } from 'node:fs'

/** Linux counts the CPU time of a process in hundredths of a second. */
const TICKS_PER_SECOND = 100

/** The CPU seconds that this process, and the children that have ended, have used. 0 where there is no /proc. */
export function cpuSeconds(): number {
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8')
    // The second field is the name in brackets, which may contain blanks. utime, stime, cutime and cstime are the fields 14 to 17.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_SECOND
  } catch {
    return 0
  }
}
