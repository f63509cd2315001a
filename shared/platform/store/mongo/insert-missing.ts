import { type Db, MongoServerError } from 'mongodb'
import { DUPLICATE } from './guard.ts'
import type { Row } from './row.ts'

/** A command takes 16 MiB, and a character up to three bytes of it. One row is shorter. */
const MAX_CHARS = 4 * 1024 * 1024
/** As of all writes of the store. A command has no other from the client. */
const MAJORITY = { w: 'majority', j: true }

type Answer = { writeErrors?: readonly { index: number; code: number; errmsg: string }[] }
type Options = { collection: string; signal: AbortSignal }

/**
 * Inserts those rows whose unique values are free, and returns the others. The command is sent as it is: `insertMany` costs a fifth more CPU, and what it
 * has beyond that, a second try, is its callers' anyway.
 */
export async function insertMissing(db: Db, rows: readonly Row[], { collection, signal }: Options): Promise<Row[]> {
  const taken: Row[] = []
  for (const documents of together(rows)) {
    const command = { insert: collection, documents, ordered: false, writeConcern: MAJORITY }
    const { writeErrors = [] } = (await db.command(command, { signal })) as Answer
    const failure = writeErrors.find(({ code }) => code !== DUPLICATE)
    if (failure) throw new MongoServerError(failure)
    for (const { index } of writeErrors) taken.push(documents[index] as Row)
  }
  return taken
}

/** Nearly always all of them. */
function together(rows: readonly Row[]): Row[][] {
  const commands: Row[][] = []
  let chars = Infinity
  for (const row of rows) {
    const length = row.doc.length + (row.body?.length ?? 0)
    chars += length
    if (chars > MAX_CHARS) {
      commands.push([])
      chars = length
    }
    commands.at(-1)?.push(row)
  }
  return commands
}
