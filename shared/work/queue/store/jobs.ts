import { SYSTEM_TENANT } from '../../../kernel/tenant.ts'
import type { TraceLink } from '../../../kernel/trace.ts'
import type { CollectionSpec, Scalar, Store } from '../../../platform/store/port.ts'
import type { Job, JobKind, JobStore, StoredJob } from '../port.ts'

/** The queue of the standalone form. Its documents are stored under no tenant, so that a start finds those of all tenants. */
export const JOBS: CollectionSpec = {
  name: 'jobs',
  key: ['id'],
  order: { within: ['kind'], by: ['added_at', 'id'], direction: 'ascending' },
}

type JobDoc = { id: string; kind: JobKind; owner: Job['tenant']; added_at: string; starts: number; trace?: TraceLink }

const PAGE = 1_000

export function createJobStore(store: Store, now: () => Date = () => new Date()): JobStore {
  const documents = store.collection(JOBS)
  return {
    async insert({ id, kind, tenant, trace }) {
      const doc: JobDoc = { id, kind, owner: tenant, added_at: now().toISOString(), starts: 0, ...(trace && { trace }) }
      await documents.insert(SYSTEM_TENANT, doc)
    },
    async countStart({ id }) {
      const found = await documents.get(SYSTEM_TENANT, { id })
      if (!found) return undefined
      const starts = Number(found.doc['starts']) + 1
      const doc = { ...found.doc, starts }
      const replacement = { doc, version: found.version }
      const isCounted = await documents.replaceIfVersion(SYSTEM_TENANT, replacement, { durability: 'weak' })
      return isCounted ? starts : undefined
    },
    async resetStarts({ id }) {
      const found = await documents.get(SYSTEM_TENANT, { id })
      if (found) await documents.replaceIfVersion(SYSTEM_TENANT, { ...found, doc: { ...found.doc, starts: 0 } })
    },
    async delete({ id }) {
      await documents.delete(SYSTEM_TENANT, { id })
    },
    async list(kind) {
      const jobs: StoredJob[] = []
      let after: Scalar[] | undefined
      do {
        const page = await documents.page(SYSTEM_TENANT, { where: { kind }, after, limit: PAGE })
        const docs = page.map(({ doc }) => doc as JobDoc)
        jobs.push(...docs.map(toStored))
        const last = docs.at(-1)
        after = last && page.length === PAGE ? [last.added_at, last.id] : undefined
      } while (after)
      return jobs
    },
  }
}

const toStored = ({ id, kind, owner, added_at, trace }: JobDoc): StoredJob => ({
  job: { kind, tenant: owner, id, ...(trace && { trace }) },
  addedAt: Date.parse(added_at),
})
