import type { Guarantee } from '../../harness/guarantee.ts'
import { startHelper } from '../../harness/product.ts'
import type { Random } from '../../harness/seed.ts'
import { allOf, none, violations } from '../figures.ts'
import type { Scenario, ScenarioOptions } from '../scenario.ts'
import { World } from '../world.ts'
import { counted } from './counters.ts'
import { ChainClient, type Chained } from './lossy-relay/chain-client.ts'
import type { Fault } from './lossy-relay/chain-reader.ts'
import { provedBy } from './lossy-relay/forgeries.ts'
import { type Harm, Nemesis } from './lossy-relay/nemesis.ts'

/** Streams as fast as they are read, which fill whole messages, and trickling ones, each of whose pieces is a message. */
type Size = { rushing: number; trickling: number; pieces: number; rounds: number }

const SHORT: Size = { rushing: 150, trickling: 100, pieces: 4_000, rounds: 1 }
const FULL: Size = { ...SHORT, rounds: 10 }
const FORGERIES = 400
const RUSH = { atOnce: 4, pieces: 256, everyMs: 0 }
const TRICKLE = { atOnce: 100, pieces: 4, everyMs: 14 }

/** The relay loses messages and connections, and no client loses an event. */
export const lossyRelay: Scenario = {
  id: 'P4',
  promise: 'what you receive is what was produced',
  run,
}

const MODEL = new URL('lossy-relay/model.ts', import.meta.url)

async function run({ isFull, random }: ScenarioOptions): Promise<Guarantee[]> {
  const size = isFull ? FULL : SHORT
  await using model = await startHelper(MODEL)
  const env = { MODEL_PROVIDER: 'openai-compatible', MODEL: 'm', MODEL_BASE_URL: model.url }
  await using world = await World.open({ random, env, gateways: 2, workers: 2, hasProxies: true })
  const nemesis = new Nemesis(world, random.fork('nemesis'))
  await nemesis.start()
  const clients = await readAll(world, size)
  const harm = await nemesis.stop()
  const holes = {
    asked: await counted(world.gateways, 'gaps_asked'),
    repaired: await counted(world.gateways, 'gaps_repaired'),
  }
  return [...prove(random.fork('forgeries')), ...judge(clients, { world, size, harm, holes })]
}

/** The checker itself: what it would not find, nobody was to believe it about. */
function prove(random: Random): Guarantee[] {
  const { found, passed } = provedBy(random, FORGERIES)
  return [
    allOf('forged streams found out', found, FORGERIES),
    none('good streams taken for forged ones', passed ? 0 : 1),
  ]
}

async function readAll(world: World, size: Size): Promise<ChainClient[]> {
  const clients: ChainClient[] = []
  for (let round = 1; round <= size.rounds; round++) {
    const [rushing, trickling] = await Promise.all([
      readEach(world, namesOf(`rush-${round}`, size.rushing), { ...RUSH, count: size.pieces }),
      readEach(world, namesOf(`trickle-${round}`, size.trickling), { ...TRICKLE, count: size.pieces }),
    ])
    clients.push(...rushing, ...trickling)
  }
  return clients
}

const namesOf = (kind: string, count: number) => Array.from({ length: count }, (_, i) => `${kind}-${i}`)

type Way = Omit<Chained, 'name' | 'first'> & { atOnce: number }

async function readEach(world: World, names: readonly string[], { atOnce, ...how }: Way): Promise<ChainClient[]> {
  const clients = names.map((name, first) => new ChainClient(world, { name, first, ...how }))
  const queue = clients.values()
  const lane = async () => {
    for (const client of queue) await client.read()
  }
  await Promise.all(Array.from({ length: atOnce }, lane))
  return clients
}

type Seen = { world: World; size: Size; harm: Harm; holes: { asked: number; repaired: number } }

function judge(clients: readonly ChainClient[], { world, size, harm, holes }: Seen): Guarantee[] {
  const readers = clients.map(({ reader }) => reader)
  const faults = readers.flatMap(({ faults: all }) => all)
  const streams = size.rounds * (size.rushing + size.trickling)
  const events = readers.reduce((sum, { frames }) => sum + frames, 0)
  const cuts = clients.flatMap(({ cuts: all }) => all)
  const count = (fault: Fault, title: string) => {
    const found = faults.filter((each) => each.fault === fault)
    return none(title, found.length, found[0]?.what)
  }
  const done = `${harm.dropped} of ${harm.messages} messages dropped, ${harm.resets} connections reset, ${harm.kills} subscribers killed`
  return [
    { ...allOf('events', events, streams * size.pieces), detail: done },
    { ...allOf('holes repaired', holes.repaired, 1), detail: `${holes.asked} found` },
    count('gap', 'gaps that nobody was told of'),
    count('reordering', 'reorderings'),
    count('duplicate', 'duplicates'),
    count('change', 'changed events'),
    allOf('streams whole in the end', readers.filter(({ isWhole }) => isWhole).length, streams),
    {
      title: 'streams cut and told so',
      value: cuts.length,
      unit: '',
      goal: { atMost: streams },
      detail: countsOf(cuts),
    },
    violations(world.check()),
  ]
}

function countsOf(names: readonly string[]): string {
  return [...Map.groupBy(names, (name) => name)].map(([name, all]) => `${all.length} ${name}`).join(', ')
}
