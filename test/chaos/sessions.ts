import { until } from '../support/until.ts'
import type { Member, World } from './world.ts'

const ANSWERED_WITHIN_MS = 10_000

/**
 * Creates sessions, evenly through all gateways. A busy machine may answer 503, above all after a fault: the request is sent again. Throws when
 * a session is refused otherwise.
 */
export async function createSessions(world: World, count: number): Promise<string[]> {
  const create = async (n: number): Promise<string | undefined> => {
    const { status, body } = await world.ask(gatewayFor(world, n), { path: '/sessions', body: {} })
    if (status === 503) return undefined
    if (status !== 201) throw new Error(`a session was refused with ${status}`)
    return (body as { session_id: string }).session_id
  }
  const waiting = { what: 'a session that is not answered 503', withinMs: ANSWERED_WITHIN_MS, everyMs: 100 }
  return Promise.all(Array.from({ length: count }, (_, n) => until(() => create(n), waiting)))
}

/** The number of these sessions that exist. One that is answered 503, as a busy machine may do after a fault, is asked for again. */
export async function countSessions(world: World, ids: readonly string[]): Promise<number> {
  const statusOf = async (id: string, n: number) => {
    const { status } = await world.ask(gatewayFor(world, n), { path: `/sessions/${id}` })
    return status === 503 ? undefined : status
  }
  const waiting = { what: 'a session that is not answered 503', withinMs: ANSWERED_WITHIN_MS, everyMs: 100 }
  const found = await Promise.all(ids.map((id, n) => until(() => statusOf(id, n), waiting)))
  return found.filter((status) => status === 200).length
}

/** The gateways in rotation. */
export function gatewayFor({ gateways }: World, n: number): Member {
  const gateway = gateways[n % gateways.length]
  if (!gateway) throw new Error('there is no gateway')
  return gateway
}
