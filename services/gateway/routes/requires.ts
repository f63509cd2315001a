import type { RequestHandler } from 'express'
import { AppError, type ErrorFields } from '../../../shared/kernel/errors.ts'

/** A part that not every server has. */
type Feature = 'config' | 'flows' | 'dispatches' | 'plans' | 'ledgers' | 'usage' | 'decisions' | 'files'

const MISSING: Record<Feature, readonly [message: string, fields?: ErrorFields]> = {
  config: [
    'runtime configuration is disabled on this server: it needs a store, and MASTER_KEY to be set; its log says more',
    { code: 'config_disabled' },
  ],
  flows: ['this server has no store for flows: set MONGODB_URL and start it again'],
  dispatches: ['this server keeps no history of flows: it needs a store, and DISPATCH_STORE must not be false'],
  plans: ['this server has no plan queue: it needs a store, and PLAN_QUEUE must not be false'],
  ledgers: ['this server has no store for ledgers: set MONGODB_URL and start it again'],
  usage: ['this server has no store, so it counts no usage: set MONGODB_URL'],
  files: ['this server has no store for files: set MONGODB_URL and start it again'],
  decisions: ['this server has no store, so it keeps no decisions'],
}

/** Creates handlers that need a part of the server; where it is missing they answer 503. */
export const requires =
  <T>(feature: Feature, part: T | undefined) =>
  (create: (part: T) => RequestHandler): RequestHandler =>
    part === undefined ? () => required(feature, part) : create(part)

/** Returns a part of the server. Throws `unavailable` where it is missing. */
export function required<T>(feature: Feature, part: T | undefined): T {
  if (part === undefined) throw new AppError('unavailable', ...MISSING[feature])
  return part
}
