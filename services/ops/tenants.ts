import type { Request, RequestHandler } from 'express'
import type { TenantRange } from '../../shared/cluster/commands/tenant-loads.ts'
import { withDeadline } from '../../shared/kernel/async/deadline.ts'
import { decodeCursor, encodeCursor } from '../../shared/kernel/cursor.ts'
import { AppError, invalidRequest } from '../../shared/kernel/errors.ts'
import type { TenantsPage } from '../../shared/tenancy/usage/tenants.ts'

export type ReadTenants = (range: TenantRange) => Promise<TenantsPage>

const WITHIN_MS = 10_000
const DEFAULT_LIMIT = 50
const LIMIT = /^([1-9]\d?|1\d\d|200)$/

/** Lists the tenants of this deployment. Only a gateway has `read`, since it can ask the other processes. */
export function answerTenants(read: () => ReadTenants | undefined): RequestHandler {
  return async (req, res) => {
    const range = rangeOf(req)
    const list = read()
    if (!list) throw new AppError('unavailable', 'the tenants are shown by the ops listeners of gateways: ask one')
    const page = await withDeadline(list(range), WITHIN_MS, away).catch(() => {
      throw away()
    })
    const next_cursor = page.next === null ? null : encodeCursor([page.next])
    res.json({ tenants: page.tenants, next_cursor, ...(page.isIncomplete && { incomplete: true }) })
  }
}

const away = () =>
  new AppError('unavailable', 'the tenants cannot be read at the moment; try again', { retryAfterSecs: 1 })

function rangeOf({ query }: Request): TenantRange {
  const { limit = String(DEFAULT_LIMIT), cursor } = query
  if (typeof limit !== 'string' || !LIMIT.test(limit))
    throw invalidRequest('limit must be a whole number from 1 to 200, given once', { param: '/limit' })
  if (cursor === undefined) return { after: '', limit: Number(limit) }
  const [after] = decodeCursor(typeof cursor === 'string' ? cursor : '', ['string'])
  return { after, limit: Number(limit) }
}
