import { type MongoSet, startMongoSet } from '../../scripts/local-services/mongo.ts'
import { memoryFolder } from '../../scripts/testing/memory-folder.ts'

/**
 * Starts a private replica set whose files are in memory where there is room: on a disk, mongod uses twice the CPU time for a store's
 * collections and indexes. The files survive the end of mongod, as those on a disk do.
 */
export const startMongoInMemory = (members = 1): Promise<MongoSet> => startMongoSet(members, memoryFolder())
