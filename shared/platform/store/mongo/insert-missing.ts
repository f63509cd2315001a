import { type Db, MongoServerError } from 'mongodb'
import { storeUnavailable } from '../unavailable.ts'
import { Group } from './group.ts'
import { DUPLICATE, type OperationGuard } from './guard.ts'
import type { Row } from './row.ts'

/** The most characters of rows in one command: a command may have 16 MiB, and a character takes up to three bytes. A single row is always shorter. */
const MAX_CHARS = 4 * 1024 * 1024
/** The same as for all writes of the store. A raw command does not get it from the client. */
const MAJORITY = { w: 'majority', j: true }

type Parts = { db: Db; guard: OperationGuard; collection: string }

/** The inserts of one collection that skip existing rows, and are sent together (`Group`): none fails because of a row of another one. */
export class MissingRows {
  readonly #group: Group<readonly Row[], readonly Row[]>

  constructor({ db, guard, collection }: Parts) {
    this.#group = new Group(async (all, waitedMs) => {
      const insert = (signal: AbortSignal) => insertMissing(db, all.flat(), { collection, signal })
      const skipped = await guard(insert, { waitedMs })
      return all.map((rows) => resultOf(rows, skipped))
    })
  }

  /** Returns the rows that were not inserted because one of their unique values is taken. */
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
 * Inserts the rows whose unique values are free, and returns those that were not inserted. The raw command is used, because `insertMany` costs a
 * fifth more CPU and only adds a second attempt, which the callers make anyway.
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

/** Divides the rows into groups that fit into one command; nearly always there is only one. */
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
