import { statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { type MongoSet, startMongoSet } from '../../scripts/local-services/mongo.ts'

const MEMORY = '/dev/shm'
/** Several test files may each have a replica set. In a container, the folder often has 64 MiB. */
const MIN_FREE_BYTES = 4 * 1024 ** 3

/**
 * Starts a private replica set whose files are in memory where there is room: on a disk, mongod uses twice the CPU time for a store's
 * collections and indexes. The files survive the end of mongod, as those on a disk do.
 */
export const startMongoInMemory = (members = 1): Promise<MongoSet> => startMongoSet(members, memoryFolder())

/** A folder for files that need not survive the machine: in memory, or where that has too little room on the disk. */
export function memoryFolder(): string {
  try {
    const { bavail, bsize } = statfsSync(MEMORY)
    return bavail * bsize >= MIN_FREE_BYTES ? MEMORY : tmpdir()
  } catch {
    return tmpdir() // Only Linux has it.
  }
}
