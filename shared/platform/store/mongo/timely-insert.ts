import { type Collection, type Document, type Filter, MongoServerError } from 'mongodb'
import { storeUnavailable } from '../unavailable.ts'

/** MongoDB's code for a value that cannot be converted. */
export const CONVERSION_FAILURE = 241

/** An expression that fails: it converts a text that is no date. It depends on the time, so that MongoDB does not evaluate it beforehand. */
export const FAIL = { $toDate: { $concat: ['late ', { $toString: '$$NOW' }] } }

/**
 * Inserts a row unless MongoDB's clock has passed `until`, and returns whether it did. `key` are the fields of a unique index; a row that
 * has them already is left as it is. Throws `unavailable` for a write that is late. An insert cannot compare the clock, so this is an
 * update of a row that does not exist.
 */
export async function insertBefore<Row extends Document>(
  rows: Collection<Row>,
  row: Row,
  { key, until, signal }: { key: readonly string[]; until: Date; signal: AbortSignal },
): Promise<boolean> {
  const filter = Object.fromEntries(key.map((field) => [field, { $eq: row[field] }])) as Filter<Row>
  const isNew = { $eq: [{ $type: '$version' }, 'missing'] }
  const inserted = { $cond: [{ $lt: ['$$NOW', until] }, { $literal: row }, FAIL] }
  const pipeline = [{ $replaceWith: { $cond: [isNew, inserted, '$$ROOT'] } }]
  try {
    const { upsertedCount } = await rows.updateOne(filter, pipeline, { upsert: true, signal } as object)
    return upsertedCount === 1
  } catch (cause) {
    if (cause instanceof MongoServerError && cause.code === CONVERSION_FAILURE)
      throw storeUnavailable('the write reached MongoDB after the lease of this process')
    throw cause
  }
}
