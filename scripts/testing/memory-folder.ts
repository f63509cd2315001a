import { statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

const MEMORY = '/dev/shm'
/** All test processes together write less than this. In a container, the folder often has 64 MiB. */
const MIN_FREE_BYTES = 4 * 1024 ** 3

/** A folder for files that need not survive the machine: in memory, or where that has too little room on the disk. */
export function memoryFolder(): string {
  try {
    const { bavail, bsize } = statfsSync(MEMORY)
    return bavail * bsize >= MIN_FREE_BYTES ? MEMORY : tmpdir()
  } catch {
    return tmpdir() // Only Linux has it.
  }
}
