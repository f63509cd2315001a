import type { RequestHandler } from 'express'
import { BUCKETS, type Bucket, DIMENSIONS, type Dimension } from '../../../shared/tenancy/usage/port.ts'
import type { UsageReport } from '../../../shared/tenancy/usage/report.ts'
import { tenantOf } from '../middleware/auth.ts'
import { oneOf, pageRequestOf, queryText, queryValue, type ValueForm } from '../params.ts'
import { requires } from './requires.ts'

const METADATA = 'metadata'
const BY: ValueForm = {
  pattern: new RegExp(
    `^(${DIMENSIONS.filter((each) => each !== METADATA).join('|')}|${METADATA}\\.[A-Za-z0-9_-]{1,64})$`,
  ),
  wanted: `one of ${DIMENSIONS.join(', ')}, the last with a point and a name behind it`,
}
const BUCKET = oneOf(BUCKETS)

/** Shows what the tenant's runs have used by hour or day (D21). */
export const showUsage = (usage: Pick<UsageReport, 'page'> | undefined): RequestHandler =>
  requires(
    'usage',
    usage,
  )((report) => async (req, res) => {
    const [by, name] = (queryValue(req, 'by', BY) ?? 'model').split('.') as [Dimension, string?]
    const bucket = (queryValue(req, 'bucket', BUCKET) ?? 'day') as Bucket
    const times = { from: queryText(req, 'from'), to: queryText(req, 'to') }
    res.json(await report.page(tenantOf(res), { by, name, bucket, ...times, ...pageRequestOf(req) }))
  })
