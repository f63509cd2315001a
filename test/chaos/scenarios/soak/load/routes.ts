import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { now } from '../../../history.ts'
import { describeEnd } from '../../../load.ts'
import type { Member, World } from '../../../world.ts'
import { FLOW_PATH, INSTANCE, PROVIDER_KEY } from '../../flows/setup.ts'
import type { StepOrder } from '../../plans/form.ts'
import type { Target } from '../faults/plan.ts'

/** A route and what it needs beside its gateway. `ask` resolves with what came, in a word; anything but `ok` is a failure. */
type Route = { name: string; needs: readonly Target[]; ask(world: World, gateway: Member): Promise<string> }

/** A request or a run, with the processes and kinds of processes that it needs. `word` is `ok` or what came instead. */
export type Probe = {
  route: string
  names: readonly string[]
  targets: readonly Target[]
  from: number
  to: number
  word: string
}

const reading = (path: string, needs: readonly Target[]): Route => ({
  name: `GET ${path}`,
  needs,
  ask: async (world, gateway) => {
    const answered = await world.ask(gateway, { path })
    const isShown = JSON.stringify(answered.body ?? null).includes(PROVIDER_KEY)
    if (isShown) world.record({ kind: 'leak', t: now(), where: path, secret: 'the key of a provider' })
    return wordFor(answered, 200)
  },
})

const ROUTES: readonly Route[] = [
  reading('/health', []),
  reading('/tools', []),
  reading('/flows', ['mongo']),
  reading('/plans?limit=5', ['mongo']),
  reading('/dispatches?limit=5', ['mongo']),
  reading('/config/instances', ['mongo']),
  reading('/customers/probed/ledger?limit=5', ['mongo']),
  {
    name: 'POST /agent/run',
    needs: ['redis', 'worker'],
    ask: async (world, gateway) => {
      const end = describeEnd(await world.run(gateway, { prompt: '/say hello' }).ended)
      return end === 'done' ? 'ok' : end
    },
  },
  { name: 'POST and DELETE /sessions', needs: ['redis', 'worker'], ask: createAndDelete },
  {
    name: `POST ${FLOW_PATH}/run`,
    needs: ['redis', 'mongo', 'executor'],
    ask: async (world, gateway) => {
      const body = { input: { token: `probe-${randomUUID()}`, ms: 10 }, provider_instance: INSTANCE }
      return wordFor(await world.ask(gateway, { path: `${FLOW_PATH}/run`, body, withinMs: 60_000 }), 200)
    },
  },
  {
    name: 'POST /plans/submit',
    needs: ['redis', 'mongo'],
    ask: async (world, gateway) => {
      const order: StepOrder = { token: `probe-${randomUUID()}`, ms: 10, writes: false }
      const body = { steps: [{ id: 'only', prompt: JSON.stringify(order) }] }
      return wordFor(await world.ask(gateway, { path: '/plans/submit', body }), 202)
    },
  },
]

async function createAndDelete(world: World, gateway: Member): Promise<string> {
  const created = await world.ask(gateway, { path: '/sessions', body: {} })
  if (created.status !== 201) return wordFor(created, 201)
  const path = `/sessions/${(created.body as { session_id: string }).session_id}`
  return wordFor(await world.ask(gateway, { method: 'DELETE', path }), 200)
}

const wordFor = ({ status, body }: { status: number; body: unknown }, wanted: number): string =>
  status === wanted ? 'ok' : `${status} ${JSON.stringify(body ?? null).slice(0, 200)}`

const EVERY_MS = 250

/** Asks one route after the other through each gateway, a quarter of a second apart, until the signal is aborted. */
export async function probeRoutes(world: World, signal: AbortSignal): Promise<Probe[]> {
  const probes: Probe[] = []
  const asking = new Set<Promise<void>>()
  for (let n = 0; !signal.aborted; n++) {
    for (const gateway of world.gateways) {
      const route = ROUTES[n % ROUTES.length] as Route
      const one = probe(world, gateway, route).then((result) => {
        probes.push(result)
        asking.delete(one)
      })
      asking.add(one)
    }
    await sleep(EVERY_MS)
  }
  await Promise.all(asking)
  return probes
}

async function probe(world: World, gateway: Member, { name, needs, ask }: Route): Promise<Probe> {
  const from = now()
  const word = await ask(world, gateway)
  return { route: name, names: [gateway.name], targets: needs, from, to: now(), word }
}
