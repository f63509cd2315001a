import type { Request, RequestHandler } from 'express'
import { invalidRequest } from '../../../shared/kernel/errors.ts'
import { positionOf } from '../../../shared/tenancy/events/event-text.ts'
import { type EventPosition, TENANT_EVENT_TYPES, type TenantEventType } from '../../../shared/tenancy/events/port.ts'
import { tenantOf } from '../middleware/auth.ts'
import { queryText, resumeIdOf } from '../params.ts'
import type { EventStreams } from '../streams/event-streams.ts'
import { answerHead, type Relay } from '../streams/sse.ts'

type Deps = { eventStreams: EventStreams; relay: Relay }

/** Streams what happens to the tenant's things (D16). */
export function followEvents({ eventStreams, relay }: Deps): RequestHandler {
  return async (req, res) => {
    const query = { types: typesOf(req), after: afterOf(req) }
    if (req.method === 'HEAD') return answerHead(undefined, res)
    relay({ frames: await eventStreams.open(tenantOf(res), query) }, res)
  }
}

const KNOWN: ReadonlySet<string> = new Set(TENANT_EVENT_TYPES)

function typesOf(req: Request): ReadonlySet<TenantEventType> | undefined {
  const names = queryText(req, 'types')?.split(',')
  if (names?.every((name) => KNOWN.has(name)) ?? true) return names && new Set(names as TenantEventType[])
  throw invalidRequest(`types must be names of events with commas between them: ${TENANT_EVENT_TYPES.join(', ')}`, {
    param: '/types',
  })
}

/** The position behind the last event that the client has (D16b). */
function afterOf(req: Request): EventPosition | undefined {
  const id = resumeIdOf(req)
  if (id === undefined) return undefined
  const position = positionOf(id.value)
  if (position) return position
  throw invalidRequest(`${id.name} must be the id of an event of this stream`, { param: `/${id.name}` })
}
