import type { RequestHandler } from 'express'
import { BUCKETS, type Bucket, DIMENSIONS, type Dimension } from '../../../shared/tenancy/usage/port.ts'
import type { UsageReport } from '../../../shared/tenancy/usage/report.ts'
import { tenantOf } from '../middleware/auth.ts'
import { oneOf, pageRequestOf, queryText, queryValue } from '../params.ts'
import { requires } from './requires.ts'

const BY = oneOf(DIMENSIONS)
const BUCKET = oneOf(BUCKETS)

/** Shows what the tenant's runs have used by hour or day (D21). */
export const showUsage = (usage: Pick<UsageReport, 'page'> | undefined): RequestHandler =>
  requires(
    'usage',
    usage,
  )((report) => async (req, res) => {
    const by = (queryValue(req, 'by', BY) ?? 'model') as Dimension
    const bucket = (queryValue(req, 'bucket', BUCKET) ?? 'day') as Bucket
    const times = { from: queryText(req, 'from'), to: queryText(req, 'to') }
    res.json(await report.page(tenantOf(res), { by, bucket, ...times, ...pageRequestOf(req) }))
  })
