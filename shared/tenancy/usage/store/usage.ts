import { createCache } from '../../../kernel/cache.ts'
import type { JsonObject } from '../../../kernel/events.ts'
import { SYSTEM_TENANT, type TenantId } from '../../../kernel/tenant.ts'
import { DAY_MS } from '../../../kernel/time.ts'
import type { Collection, CollectionSpec, Store } from '../../../platform/store/port.ts'
import type { Bucket, UsageAddition, UsageRows, UsageStore, UsageSums } from '../port.ts'
import { addRows, OTHER, REST } from '../sums.ts'

/** A document for each hour and each day of a dimension, with the rows of all its values. */
export const USAGE: CollectionSpec = {
  name: 'usage',
  key: ['by', 'bucket', 'start'],
  order: { within: ['by', 'bucket'], by: ['start'], direction: 'ascending' },
  expiresBy: 'expires_ms',
}

/** The tenants of each day, for operators. */
export const USAGE_TENANTS: CollectionSpec = {
  name: 'usage_tenants',
  key: ['day', 'name'],
  order: { within: ['day'], by: ['name'], direction: 'ascending' },
  ttlSecs: 2 * 24 * 3_600,
}

/** Tenants of this day that this process has listed; listing one again has no effect. */
const KNOWN_TENANTS = 10_000

/** How many values of a dimension, or combinations of values, an hour or a day keeps; further ones are added up (D21c). */
export const MAX_KEYS = 200
const MAX_CROSSED = 500

const KEPT_MS: Record<Bucket, number> = { hour: 35 * DAY_MS, day: 400 * DAY_MS }
/** How often an addition is tried when other processes change the document at the same time. After that it is made later. */
const MAX_TRIES = 5
/** Processes whose last addition a document remembers. One of these must still be there when an addition is repeated. */
const MAX_WRITERS = 64

/** The usage of a document, and the latest addition of each process that has recently added to it. */
type UsageDoc = { rows: StoredRow[]; writers: [process: string, number: number][] }
/** A row of an older version has no count of invalid outputs, and none of what caches read or write. */
type StoredRow = Omit<UsageSums, 'durations' | keyof typeof NEWER> &
  Partial<typeof NEWER> & { key: string; durations: [index: number, count: number][] }
const NEWER = { invalid: 0, cache_read_tokens: 0, cache_write_tokens: 0 }

export function createUsageStore(store: Store): UsageStore {
  const usage = store.collection(USAGE)
  const tenants = store.collection(USAGE_TENANTS)
  const known = createCache<string, true>(KNOWN_TENANTS)
  const listTenant = async (day: string, name: TenantId) => {
    const key = `${day} ${name}`
    if (known.get(key)) return
    await tenants.insert(SYSTEM_TENANT, { day, name }, { durability: 'ordered' })
    known.set(key, true)
  }
  return {
    async add(tenant, addition) {
      if (addition.bucket === 'day') await listTenant(addition.start, tenant)
      for (let tries = 0; tries < MAX_TRIES; tries++) if (await tryAdd(usage, tenant, addition)) return true
      return false
    },
    async tenants(day, { after, limit }) {
      const found = await tenants.page(SYSTEM_TENANT, { where: { day }, after: [after], limit })
      return found.map(({ doc }) => String(doc['name']) as TenantId)
    },
    async read(tenant, { by, bucket, from, until, limit }) {
      const after = [new Date(Date.parse(from) - 1).toISOString()]
      const found = await usage.page(tenant, { where: { by, bucket }, after, until: [until], limit })
      return found.map(({ doc }) => ({ start: String(doc['start']), rows: rowsOf(doc as UsageDoc) }))
    },
  }
}

/** Returns `false` when another process was faster. An earlier attempt that failed may have been stored all the same. */
async function tryAdd(usage: Collection, tenant: TenantId, addition: UsageAddition): Promise<boolean> {
  const { by, bucket, start, rows, process, number } = addition
  const found = await usage.get(tenant, { by, bucket, start })
  const { rows: known, writers } = found ? readDoc(found.doc) : { rows: new Map(), writers: [] }
  if (writers.some(([writer, latest]) => writer === process && latest >= number)) return true
  const doc = {
    by,
    bucket,
    start,
    expires_ms: Date.parse(start) + KEPT_MS[bucket],
    rows: storedRows(addRows(known, rows, by === 'crossed' ? MAX_CROSSED : MAX_KEYS)),
    writers: [[process, number], ...writers.filter(([writer]) => writer !== process)].slice(0, MAX_WRITERS),
  }
  const durability = 'ordered' // The disk is not synced: a power failure may cost the last seconds.
  return found
    ? usage.replaceIfVersion(tenant, { doc, version: found.version }, { durability })
    : usage.insert(tenant, doc, { durability })
}

const readDoc = (doc: JsonObject) => ({ rows: rowsOf(doc as UsageDoc), writers: (doc as UsageDoc).writers })

const rowsOf = ({ rows }: UsageDoc): UsageRows =>
  new Map(rows.map(({ key, durations, ...sums }) => [swap(key), { ...NEWER, ...sums, durations: new Map(durations) }]))

const storedRows = (rows: UsageRows): StoredRow[] =>
  [...rows].map(([key, { durations, ...sums }]) => ({ key: swap(key), ...sums, durations: [...durations] }))

/**
 * The rest is stored under the same key as in older versions. A value that really has this name is stored under the key
 * that the rest has in memory.
 */
const swap = (key: string): string => (key === REST ? OTHER : key === OTHER ? REST : key)
