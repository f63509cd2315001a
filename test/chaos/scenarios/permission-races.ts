import { setTimeout as sleep } from 'node:timers/promises'
import type { Guarantee } from '../../harness/guarantee.ts'
import type { Random } from '../../harness/seed.ts'
import { allOf, none, quantileOf, violations } from '../figures.ts'
import type { SeenMessage } from '../proxy/faults.ts'
import type { Scenario, ScenarioOptions } from '../scenario.ts'
import { World } from '../world.ts'
import { type Kind, type Raced, replyAtEdge, replyWithoutBell, twoReplies } from './permission-races/kinds.ts'

type Size = { pairs: number; edges: number; bells: number }

const SHORT: Size = { pairs: 500, edges: 300, bells: 200 }
const FULL: Size = { pairs: 5_000, edges: 3_000, bells: 2_000 }
/**
 * So few at once that it is not this machine's load that is measured; those that wait for long start one after the other, or
 * all of them would do everything in the same moment.
 */
const WAYS = {
  pairs: { atOnce: 3, spreadMs: 0 },
  edges: { atOnce: 60, spreadMs: 1_000 },
  bells: { atOnce: 16, spreadMs: 500 },
}
const TIMEOUT_SECS = 1
/** Of each side, how many races at the edge it must win for it to have been one. */
const EDGE_SHARE = 0.1

/** Replies race each other and the timeout, and the bell that tells of them is lost. */
export const permissionRaces: Scenario = {
  id: 'P6',
  promise: 'a permission ok is a promise',
  run,
}

async function run({ isFull, random }: ScenarioOptions): Promise<Guarantee[]> {
  const size = isFull ? FULL : SHORT
  const env = { PERMISSION_TIMEOUT_SECS: String(TIMEOUT_SECS) }
  await using world = await World.open({ random, env, gateways: 2, workers: 2, hasProxies: true })
  const mute = await muteBells(world)
  const load = (races: number, name: keyof Size) => ({ races, ...WAYS[name], random: random.fork(name) })
  const pairs = await raceAll(world, twoReplies, load(size.pairs, 'pairs'))
  const [edges, bells] = await Promise.all([
    raceAll(world, replyAtEdge(TIMEOUT_SECS * 1000), load(size.edges, 'edges')),
    raceAll(world, replyWithoutBell(mute), load(size.bells, 'bells')),
  ])
  return judge({ pairs, edges, bells }, world)
}

type Load = { races: number; atOnce: number; spreadMs: number; random: Random }

async function raceAll(world: World, kind: Kind, { races, atOnce, spreadMs, random }: Load): Promise<Raced[]> {
  const raced: Raced[] = []
  const queue = Array.from({ length: races }, (_, i) => random.fork(`race ${i}`)).values()
  const lane = async (_: unknown, i: number) => {
    await sleep((i * spreadMs) / atOnce)
    for (const own of queue) raced.push(await kind(world, own).catch(failed))
  }
  await Promise.all(Array.from({ length: atOnce }, lane))
  return raced
}

/** A race that did not come to its end is one that broke the promise. */
const failed = (cause: unknown): Raced => ({ resumedInMs: 0, wasReplied: false, problem: String(cause) })

/** Of the requests told to what is returned no worker hears that they were decided: it has to look. */
async function muteBells(world: World): Promise<(request: string) => void> {
  const muted = new Set<string>()
  const drop = ({ channel, payload }: SeenMessage) => channel.startsWith('ae:bell:') && muted.has(payload.toString())
  await Promise.all(world.workers.map(async ({ proxy }) => proxy?.mode({ drop })))
  return (request) => void muted.add(request)
}

const droppedIn = ({ workers }: World): number =>
  workers.reduce((sum, { proxy }) => sum + (proxy?.stats.dropped ?? 0), 0)

type Races = { pairs: Raced[]; edges: Raced[]; bells: Raced[] }

function judge({ pairs, edges, bells }: Races, world: World): Guarantee[] {
  const all = [...pairs, ...edges, ...bells]
  const wrong = all.flatMap(({ problem }) => problem ?? [])
  const replied = edges.filter(({ wasReplied }) => wasReplied).length
  const atEdge = Math.min(replied, edges.length - replied)
  const resumed = (races: readonly Raced[]) => races.filter((race) => race.wasReplied).map((race) => race.resumedInMs)
  return [
    {
      ...allOf('races', all.length, all.length),
      detail: `${pairs.length} pairs, ${edges.length} at the edge, ${bells.length} without a bell`,
    },
    none('races without one winner whom the engine follows', wrong.length, wrong[0]),
    {
      ...allOf('races at the edge that either side won', atEdge, Math.ceil(edges.length * EDGE_SHARE)),
      detail: `${replied} by a reply, ${edges.length - replied} by the timeout`,
    },
    quantileOf('from reply to resumption, p99', resumed(pairs), { part: 0.99, atMost: 100 }),
    allOf('bells lost', droppedIn(world), bells.length),
    quantileOf('from reply to resumption without a bell, p99', resumed(bells), { part: 0.99, atMost: 700 }),
    violations(world.check()),
  ]
}
