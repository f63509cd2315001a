import type { Collection, Filter, WriteError } from 'mongodb'
import type { Scalar } from '../port.ts'
import { storeUnavailable } from '../unavailable.ts'
import { Group } from './group.ts'
import { DUPLICATE, isDuplicate, type OperationGuard, writeErrorsOf } from './guard.ts'
import type { Row } from './row.ts'
import { CONVERSION_FAILURE, FAIL } from './timely-insert.ts'

/** The row with these values in fields that together are unique within its tenant. `unexpired` is another condition. */
export type Lookup = {
  tenant: string
  fields: readonly string[]
  values: readonly Scalar[]
  unexpired: Filter<Row>
}

/** `filter` finds the row by its key, and `values` replace its fields if it has this version. */
export type Replacing = { filter: Filter<Row>; version: number; values: Partial<Row> }

export type FoundRow = Pick<Row, 'doc' | 'version' | 'body'>

type Parts = { rows: Collection<Row>; guard: OperationGuard; readMs: number }

/** The operations of one collection that are sent together (`Group`): each has its own result, and none fails because of another one. */
export class GroupedRows {
  readonly #parts: Parts
  readonly #lookups = new Group<Lookup, FoundRow | undefined>((all, waitedMs) => this.#find(all, waitedMs))
  readonly #inserts = new Group<Row, boolean>((all, waitedMs) => this.#insert(all, waitedMs, {}))
  readonly #weakInserts = new Group<Row, boolean>((all, waitedMs) => this.#insert(all, waitedMs, ON_PRIMARY))
  readonly #replacements = new Group<Replacing, boolean>((all, waitedMs) => this.#replace(all, waitedMs))

  constructor(parts: Parts) {
    this.#parts = parts
  }

  find(lookup: Lookup): Promise<FoundRow | undefined> {
    return this.#lookups.add(lookup)
  }

  /** Resolves with `false` when a unique value of the row is taken. */
  insert(row: Row, { isWeak }: { isWeak: boolean }): Promise<boolean> {
    return (isWeak ? this.#weakInserts : this.#inserts).add(row, row.doc.length)
  }

  /** Resolves with `false` when there is no such row, when it has another version, and when a unique value is taken. */
  replace(replacing: Replacing): Promise<boolean> {
    return this.#replacements.add(replacing, replacing.values.doc?.length)
  }

  async #find(lookups: readonly Lookup[], waitedMs: number): Promise<PromiseFulfilledResult<FoundRow | undefined>[]> {
    const { rows, guard, readMs } = this.#parts
    const groups = [...Map.groupBy(lookups, groupOf).values()].flatMap(filtersOf)
    const filter = (groups.length === 1 ? groups[0] : { $or: groups }) as Filter<Row>
    const shown = Object.fromEntries(lookups.flatMap(({ fields }) => fields.map((field) => [field, 1])))
    const options = { maxTimeMS: readMs, projection: { _id: 0, doc: 1, body: 1, version: 1, tenant: 1, ...shown } }
    const found = await guard((signal) => rows.find(filter, { signal, ...options }).toArray(), { waitedMs })
    const rowOf = ({ tenant, fields, values }: Lookup) =>
      found.find((row) => row.tenant === tenant && fields.every((field, i) => row[field] === values[i]))
    return lookups.map((lookup) => ({ status: 'fulfilled', value: rowOf(lookup) }))
  }

  #insert(all: readonly Row[], waitedMs: number, concern: object): Promise<PromiseSettledResult<boolean>[]> {
    const { rows } = this.#parts
    const [first, ...others] = all
    // Copies for each attempt: the driver adds an _id to the objects, and inserting those again would be a duplicate.
    if (first && others.length === 0)
      return this.#writeOne(waitedMs, async (signal) => {
        await rows.insertOne({ ...first }, { signal, ...concern } as object)
        return true
      })
    return this.#write(all.length, waitedMs, async (signal) => {
      const options = { ordered: false, signal, ...concern } as object
      await rows.insertMany(
        all.map((row) => ({ ...row })),
        options,
      )
    })
  }

  /**
   * The answer to several updates names those that failed, but for the others only the number that found a row. So each update finds its
   * row by the key only, and is made to fail if the row has another version or does not exist.
   */
  #replace(all: readonly Replacing[], waitedMs: number): Promise<PromiseSettledResult<boolean>[]> {
    const { rows } = this.#parts
    const [first, ...others] = all
    if (first && others.length === 0) return this.#writeOne(waitedMs, (signal) => replaceOne(rows, first, signal))
    return this.#write(all.length, waitedMs, async (signal) => {
      const updates = all.map(({ filter, version, values }) => ({
        updateOne: { filter, update: [{ $set: assignments(values, version) }], upsert: true },
      }))
      await rows.bulkWrite(updates, { ordered: false, signal } as object)
    })
  }

  async #writeOne(
    waitedMs: number,
    write: (signal: AbortSignal) => Promise<boolean>,
  ): Promise<PromiseSettledResult<boolean>[]> {
    try {
      return [fulfilled(await this.#parts.guard(write, { waitedMs }))]
    } catch (cause) {
      if (isDuplicate(cause)) return [fulfilled(false)]
      throw cause
    }
  }

  /** A write that is not among the errors of the answer has been done. */
  async #write(
    count: number,
    waitedMs: number,
    operation: (signal: AbortSignal) => Promise<void>,
  ): Promise<PromiseSettledResult<boolean>[]> {
    const write = async (signal: AbortSignal) => {
      try {
        await operation(signal)
        return []
      } catch (cause) {
        return writeErrorsOf(cause)
      }
    }
    const errors = await this.#parts.guard(write, { waitedMs })
    const results = Array.from({ length: count }, (): PromiseSettledResult<boolean> => fulfilled(true))
    for (const error of errors) results[error.index] = resultOf(error)
    return results
  }
}

/** Waits only for the primary: a new primary may lack the write. An `ordered` write needs more, because the next write may go to that new primary. */
export const ON_PRIMARY = { writeConcern: { w: 1 } }

async function replaceOne(
  rows: Collection<Row>,
  { filter, version, values }: Replacing,
  signal: AbortSignal,
): Promise<boolean> {
  const versioned = { ...filter, version: { $eq: version } } as Filter<Row>
  const change = { $set: { ...values, version: version + 1 } }
  return (await rows.updateOne(versioned, change, { signal } as object)).matchedCount === 1
}

const groupOf = ({ tenant, fields }: Lookup): string => `${fields.join()} ${tenant}`

/** One filter for all values of a field, or one for each row that several fields identify. */
function filtersOf(lookups: readonly Lookup[]): object[] {
  const [{ tenant, fields, unexpired } = NO_LOOKUP] = lookups
  const [field = ''] = fields
  const filterOf = (conditions: object) => ({ tenant: { $eq: tenant }, ...conditions, ...unexpired })
  const equal = ({ values }: Lookup) => Object.fromEntries(fields.map((each, i) => [each, { $eq: values[i] }]))
  if (fields.length > 1 || lookups.length === 1) return lookups.map((lookup) => filterOf(equal(lookup)))
  return [filterOf({ [field]: { $in: [...new Set(lookups.map(({ values: [value] }) => value))] } })]
}

const NO_LOOKUP: Lookup = { tenant: '', fields: [], values: [], unexpired: {} }

/** The values of the next version of a row, as expressions that fail when its version is not this one. */
function assignments(values: Partial<Row>, version: number): object {
  const next = { $cond: [{ $eq: ['$version', version] }, version + 1, FAIL] }
  return {
    ...Object.fromEntries(Object.entries(values).map(([field, value]) => [field, { $literal: value }])),
    version: next,
  }
}

const fulfilled = (value: boolean): PromiseSettledResult<boolean> => ({ status: 'fulfilled', value })

/** A violated unique index or another version is a normal result, not a failure. */
function resultOf(error: WriteError): PromiseSettledResult<boolean> {
  if (error.code === DUPLICATE || error.code === CONVERSION_FAILURE) return fulfilled(false)
  return { status: 'rejected', reason: storeUnavailable(error) }
}
