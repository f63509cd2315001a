import { expect } from 'chai'
import { DEFAULT_TENANT, type TenantId } from '../../../shared/kernel/tenant.ts'
import type { AuditedChange } from '../../../shared/tenancy/tenant-config/config-changes.ts'
import { ConfigHistory } from '../../../shared/tenancy/tenant-config/config-history.ts'
import type { AuditPage } from '../../../shared/tenancy/tenant-config/store/config-audit.ts'

const CHANGES: AuditedChange[] = ['e', 'd', 'c', 'b', 'a'].map((id) => ({
  ...{ id, at: `2026-11-22T09:00:00.00${id.charCodeAt(0) - 97}Z`, subject: 'ada', changes: [] },
}))

/** A store with these changes, newest first. */
const audit = async (tenant: TenantId, { limit, after }: AuditPage) => {
  expect(tenant).to.equal(DEFAULT_TENANT)
  const from = after === undefined ? 0 : CHANGES.findIndex(({ at, id }) => at === after[0] && id === after[1]) + 1
  return CHANGES.slice(from, from + limit)
}

describe('the history of a configuration', () => {
  it('shows all changes page by page, newest first, each once', async () => {
    const history = new ConfigHistory({ audit })
    const pages: string[][] = []
    let cursor: string | null | undefined
    while (cursor !== null) {
      const page = await history.list(DEFAULT_TENANT, { limit: 2, ...(cursor !== undefined && { cursor }) })
      pages.push(page.changes.map(({ id }) => id))
      cursor = page.next_cursor
    }
    expect(pages).to.deep.equal([['e', 'd'], ['c', 'b'], ['a']])
  })
})
