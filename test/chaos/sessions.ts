import type { Member, World } from './world.ts'

/** Creates sessions, evenly through all gateways. Throws when one is refused. */
export async function createSessions(world: World, count: number): Promise<string[]> {
  return Promise.all(
    Array.from({ length: count }, async (_, n) => {
      const { status, body } = await world.ask(gatewayFor(world, n), { path: '/sessions', body: {} })
      if (status !== 201) throw new Error(`a session was refused with ${status}`)
      return (body as { session_id: string }).session_id
    }),
  )
}

/** The number of these sessions that exist. */
export async function countSessions(world: World, ids: readonly string[]): Promise<number> {
  const found = await Promise.all(ids.map((id, n) => world.ask(gatewayFor(world, n), { path: `/sessions/${id}` })))
  return found.filter(({ status }) => status === 200).length
}

/** The gateways in rotation. */
export function gatewayFor({ gateways }: World, n: number): Member {
  const gateway = gateways[n % gateways.length]
  if (!gateway) throw new Error('there is no gateway')
  return gateway
}
