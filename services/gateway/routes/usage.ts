import type { RequestHandler } from 'express'
import { BUCKETS, type Bucket, CROSSED, type Crossed } from '../../../shared/tenancy/usage/port.ts'
import type { UsageQuery, UsageReport } from '../../../shared/tenancy/usage/report.ts'
import { tenantOf } from '../middleware/auth.ts'
import { oneOf, pageRequestOf, queryText, queryValue, type ValueForm } from '../params.ts'
import { requires } from './requires.ts'

const FIELD = `(${CROSSED.join('|')})`
const TWICE = CROSSED.map((each) => `${each},${each}`).join('|')
const BY: ValueForm = {
  pattern: new RegExp(`^(?!(${TWICE})$)(${FIELD}(,${FIELD})?|metadata\\.[A-Za-z0-9_-]{1,64})$`),
  wanted: `one of ${CROSSED.join(', ')}, or two different ones with a comma between them, or metadata with a point and a name behind it`,
}
const BUCKET = oneOf(BUCKETS)

/** Shows what the tenant's runs have used by hour or day (D21). */
export const showUsage = (usage: Pick<UsageReport, 'page'> | undefined): RequestHandler =>
  requires(
    'usage',
    usage,
  )((report) => async (req, res) => {
    const division = divisionOf(queryValue(req, 'by', BY) ?? 'model')
    const bucket = (queryValue(req, 'bucket', BUCKET) ?? 'day') as Bucket
    const times = { from: queryText(req, 'from'), to: queryText(req, 'to') }
    res.json(await report.page(tenantOf(res), { ...division, bucket, ...times, ...pageRequestOf(req) }))
  })

function divisionOf(text: string): Pick<UsageQuery, 'by' | 'and' | 'name'> {
  const [by, name] = text.split('.') as [string, string?]
  const [first, and] = by.split(',') as [UsageQuery['by'], Crossed?]
  return { by: first, and, name }
}
