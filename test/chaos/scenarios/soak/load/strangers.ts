import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../../../harness/seed.ts'
import { now } from '../../../history.ts'
import type { Tenants } from '../tenants.ts'
import type { Loading } from './runs.ts'

const EVERY_MS = 250

/** Ids of the owner that a stranger tries. */
export type Owned = { runs: string[]; plans: string[]; dispatches: string[] }

/** Sends requests with forged tokens, and a stranger's requests for things of the owner, and records what they are answered. Returns how many. */
export async function intrude(
  { world, random, signal }: Loading,
  tenants: Tenants,
  owned: () => Owned,
): Promise<number> {
  let n = 0
  for (; !signal.aborted; n++) {
    const of = random.fork(`intrusion ${n}`)
    const path = pathFor(of, owned())
    const isForged = of.chance(0.5)
    const headers = isForged ? { authorization: '', ...of.pick(tenants.forged) } : tenants.stranger
    const { status } = await world.ask(of.pick(world.gateways), { path, headers })
    const t = now()
    if (isForged && status > 0) world.record({ kind: 'answer', t, route: path, status, wrong: 'token' })
    if (!isForged && status === 200) world.record({ kind: 'sighting', t, where: path, of: 'acme', by: 'globex' })
    await sleep(EVERY_MS)
  }
  return n
}

function pathFor(random: Random, { runs, plans, dispatches }: Owned): string {
  const paths = [
    ...runs.slice(-20).flatMap((run) => [`/runs/${run}`, `/runs/${run}/events`]),
    ...plans.slice(-20).map((id) => `/plans/${id}`),
    ...dispatches.slice(-20).map((id) => `/dispatches/${id}`),
  ]
  return random.pick(paths.length > 0 ? paths : ['/runs/run_00000000000000000000000000000000'])
}
