import { allOf, type Guarantee, none } from '../../harness/guarantee.ts'
import { startProgram } from '../../harness/product.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import type { Random } from '../../harness/seed.ts'
import { noViolations } from '../checker.ts'
import { sumCounter } from '../counters.ts'
import { World } from '../world.ts'
import { freezeInTurn } from './freeze-gateway.ts'
import { ChainClient, type ChainRequest } from './lossy-relay/chain-client.ts'
import type { Fault } from './lossy-relay/chain-reader.ts'
import { detectForgeries } from './lossy-relay/forgeries.ts'
import { type FaultCounts, Nemesis } from './lossy-relay/nemesis.ts'

/** Rushing streams are as fast as their reader and fill whole relay messages; of trickling ones, each piece is a message. */
type Size = { rushing: number; trickling: number; pieces: number; rounds: number }

const SHORT: Size = { rushing: 4, trickling: 8, pieces: 1_200, rounds: 1 }
const FULL: Size = { rushing: 150, trickling: 100, pieces: 4_000, rounds: 10 }
const FORGERIES = 400
const RUSH = { atOnce: 4, pieces: 256, everyMs: 0 }
const TRICKLE = { atOnce: 100, pieces: 4, everyMs: 14 }

/** Drops messages and breaks connections of the relay; no client may lose an event. */
export const lossyRelay: Scenario = {
  id: 'P4',
  promise: 'a client receives exactly the events that were produced',
  run,
}

const MODEL = new URL('lossy-relay/model.ts', import.meta.url)

async function run(options: ScenarioOptions): Promise<Guarantee[]> {
  const { isFull, random } = options
  const size = isFull ? FULL : SHORT
  await using model = await startProgram(MODEL)
  const env = { MODEL_PROVIDER: 'openai-compatible', MODEL: 'm', MODEL_BASE_URL: model.url }
  await using world = await World.open({ random, env, gateways: 2, workers: 2, hasProxies: true })
  const nemesis = new Nemesis(world, random.fork('nemesis'))
  await nemesis.start()
  const clients = await readAll(world, size)
  const faults = await nemesis.stop()
  const gaps = {
    asked: await sumCounter(world.gateways, 'gaps_asked'),
    repaired: await sumCounter(world.gateways, 'gaps_repaired'),
  }
  world.endRound()
  return [
    ...verifyReader(random.fork('forgeries')),
    ...guaranteesOf(clients, { size, faults, gaps }),
    ...(isFull ? [] : await freezeInTurn(world, options)),
    noViolations(world.check()),
  ]
}

/** Verifies that the reader detects altered streams. */
function verifyReader(random: Random): Guarantee[] {
  const { found, passed } = detectForgeries(random, FORGERIES)
  return [
    allOf('altered streams detected', found, FORGERIES),
    none('intact streams reported as altered', passed ? 0 : 1),
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

type Way = Omit<ChainRequest, 'name' | 'first'> & { atOnce: number }

async function readEach(world: World, names: readonly string[], { atOnce, ...how }: Way): Promise<ChainClient[]> {
  const clients = names.map((name, first) => new ChainClient(world, { name, first, ...how }))
  const queue = clients.values()
  const worker = async () => {
    for (const client of queue) await client.read()
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return clients
}

type Seen = { size: Size; faults: FaultCounts; gaps: { asked: number; repaired: number } }

function guaranteesOf(clients: readonly ChainClient[], { size, faults, gaps }: Seen): Guarantee[] {
  const readers = clients.map(({ reader }) => reader)
  const altered = readers.flatMap(({ faults: all }) => all)
  const streams = size.rounds * (size.rushing + size.trickling)
  const events = readers.reduce((sum, { frames }) => sum + frames, 0)
  const cuts = clients.flatMap(({ cuts: all }) => all)
  const count = (fault: Fault, title: string) => {
    const found = altered.filter((each) => each.fault === fault)
    return none(title, found.length, found[0]?.what)
  }
  const done = `${faults.dropped} of ${faults.messages} messages dropped, ${faults.resets} connections reset, ${faults.kills} subscriber connections killed`
  return [
    { ...allOf('events', events, streams * size.pieces), detail: done },
    { ...allOf('gaps repaired', gaps.repaired, 1), detail: `${gaps.asked} found` },
    count('gap', 'gaps without an error event'),
    count('reordering', 'reorderings'),
    count('duplicate', 'duplicates'),
    count('change', 'changed events'),
    none(
      'streams cut with stream_gap, although their journals live',
      cuts.filter((cut) => cut === 'stream_gap').length,
    ),
    allOf('streams complete in the end', readers.filter(({ isWhole }) => isWhole).length, streams),
    {
      title: 'streams cut with an error event',
      value: cuts.length,
      unit: '',
      goal: { atMost: streams },
      detail: countsOf(cuts),
    },
  ]
}

function countsOf(names: readonly string[]): string {
  return [...Map.groupBy(names, (name) => name)].map(([name, all]) => `${all.length} ${name}`).join(', ')
}
