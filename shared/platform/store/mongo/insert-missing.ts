import { type Db, MongoServerError } from 'mongodb'
import { storeUnavailable } from '../unavailable.ts'
import { Group } from './group.ts'
import { DUPLICATE, type OperationGuard } from './guard.ts'
import type { Row } from './row.ts'

/** The most characters of rows in one command: it may have 16 MiB, and a character takes up to three bytes. A single row is always shorter. */
const MAX_CHARS = 4 * 1024 * 1024
/** As of all writes of the store. A command has no other from the client. */
const MAJORITY = { w: 'majority', j: true }

type Parts = { db: Db; guard: OperationGuard; collection: string }

/** The inserts of one collection that skip what is there, and go together (`Group`): none fails for a row of another one. */
export class MissingRows {
  readonly #group: Group<readonly Row[], readonly Row[]>

  constructor({ db, guard, collection }: Parts) {
    this.#group = new Group(async (all, waitedMs) => {
      const insert = (signal: AbortSignal) => insertMissing(db, all.flat(), { collection, signal })
      const skipped = await guard(insert, { waitedMs })
      return all.map((rows) => resultOf(rows, skipped))
    })
  }

  /** Returns those rows that have not been inserted: a unique value of theirs is taken. */
  insert(rows: readonly Row[]): Promise<readonly Row[]> {
    return this.#group.add(
      rows,
      rows.reduce((sum, row) => sum + charsOf(row), 0),
    )
  }
}

/** The rows that were not inserted, each with the code of its error. */
type Skipped = ReadonlyMap<Row, WriteFailure>

function resultOf(rows: readonly Row[], skipped: Skipped): PromiseSettledResult<readonly Row[]> {
  const failures = rows.flatMap((row) => skipped.get(row) ?? [])
  const failure = failures.find(({ code }) => code !== DUPLICATE)
  if (failure) return { status: 'rejected', reason: storeUnavailable(new MongoServerError(failure)) }
  return { status: 'fulfilled', value: failures.length === 0 ? [] : rows.filter((row) => skipped.has(row)) }
}

type WriteFailure = { index: number; code: number; errmsg: string }
type Answer = { writeErrors?: readonly WriteFailure[] }
type Options = { collection: string; signal: AbortSignal }

/**
 * Inserts the rows whose unique values are free, and returns those that were not inserted. The command is sent as it is: `insertMany` costs a fifth more
 * CPU, and what it has beyond that, a second try, is its callers' anyway.
 */
async function insertMissing(db: Db, rows: readonly Row[], { collection, signal }: Options): Promise<Skipped> {
  const skipped = new Map<Row, WriteFailure>()
  for (const documents of together(rows)) {
    const command = { insert: collection, documents, ordered: false, writeConcern: MAJORITY }
    const { writeErrors = [] } = (await db.command(command, { signal })) as Answer
    for (const failure of writeErrors) skipped.set(documents[failure.index] as Row, failure)
  }
  return skipped
}

/** Parts the rows by what one command can hold, which is nearly always all of them. */
function together(rows: readonly Row[]): Row[][] {
  const commands: Row[][] = []
  let chars = Infinity
  for (const row of rows) {
    chars += charsOf(row)
    if (chars > MAX_CHARS) {
      commands.push([])
      chars = charsOf(row)
    }
    commands.at(-1)?.push(row)
  }
  return commands
}

const charsOf = ({ doc, body = '' }: Row): number => doc.length + body.length
