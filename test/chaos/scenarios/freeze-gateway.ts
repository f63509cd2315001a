import { setTimeout as sleep } from 'node:timers/promises'
import { allOf, type Guarantee, none, slowest } from '../../harness/guarantee.ts'
import { startProgram } from '../../harness/product.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import type { Random } from '../../harness/seed.ts'
import { noViolations } from '../checker.ts'
import { timeUntil } from '../time-until.ts'
import { type Member, World } from '../world.ts'
import { ChainClient } from './lossy-relay/chain-client.ts'

/** A gateway is evicted after 4 s of silence. Some freezes are shorter, some longer. */
const FREEZE_MS = [2_000, 10_000] as const
const SHORT_FREEZES_MS = [
  [2_000, 3_000],
  [5_000, 6_000],
] as const
const FULL_ROUNDS = 12

/** Trickling streams last longer than the freeze; rushing ones are as fast as their reader, so that much waits for the gateway. */
const STREAMS = { short: { trickling: 4, rushing: 2 }, full: { trickling: 60, rushing: 30 } }
const TRICKLE = { pieces: 4, everyMs: 14 }
const RUSH = { pieces: 256, everyMs: 0, count: 4_000 }
const OUTLAST_MS = 3_000
const UNTIL_FREEZE_MS = 1_000
const SERVES_WITHIN_MS = 5_000

/** Freezes one of two gateways. Its clients wait, or resume through the other one; they lose no event. */
export const freezeGateway: Scenario = {
  id: 'P4',
  promise: 'a client of a frozen gateway receives exactly the events that were produced, and the gateway serves again',
  isFullOnly: true, // The short form is a part of that of the lossy relay.
  run,
}

const MODEL = new URL('lossy-relay/model.ts', import.meta.url)

type Round = { clients: ChainClient[]; servesInMs: number }

async function run(options: ScenarioOptions): Promise<Guarantee[]> {
  await using model = await startProgram(MODEL)
  const env = { MODEL_PROVIDER: 'openai-compatible', MODEL: 'm', MODEL_BASE_URL: model.url }
  await using world = await World.open({ random: options.random, env, gateways: 2, workers: 9 })
  return [...(await freezeInTurn(world, options)), noViolations(world.check())]
}

/** Freezes a gateway of the world several times. The model is that of `lossy-relay`. */
export async function freezeInTurn(world: World, { isFull, random, say }: ScenarioOptions): Promise<Guarantee[]> {
  const rounds: Round[] = []
  for (const [n, forMs] of freezesOf(isFull, random).entries()) {
    const streams = STREAMS[isFull ? 'full' : 'short']
    const victim = random.pick(world.gateways)
    const round = await freezeOne(world, { name: `round-${n + 1}`, streams, forMs, victim })
    rounds.push(round)
    world.endRound()
    say(`frozen for ${forMs} ms: served again after ${Math.round(round.servesInMs)} ms; cuts: ${cutsOf([round])}`)
  }
  return guaranteesOf(rounds)
}

const freezesOf = (isFull: boolean, random: Random): number[] =>
  isFull
    ? Array.from({ length: FULL_ROUNDS }, () => random.between(...FREEZE_MS))
    : SHORT_FREEZES_MS.map(([least, most]) => random.between(least, most))

type Plan = { name: string; streams: { trickling: number; rushing: number }; forMs: number; victim: Member }

async function freezeOne(world: World, { name, streams: { trickling, rushing }, forMs, victim }: Plan): Promise<Round> {
  const trickleMs = UNTIL_FREEZE_MS + forMs + OUTLAST_MS
  const count = Math.ceil(trickleMs / TRICKLE.everyMs) * TRICKLE.pieces
  const clients = [
    ...Array.from(
      { length: trickling },
      (_, first) => new ChainClient(world, { name: `${name}-trickle-${first}`, first, ...TRICKLE, count }),
    ),
    ...Array.from(
      { length: rushing },
      (_, first) => new ChainClient(world, { name: `${name}-rush-${first}`, first, ...RUSH }),
    ),
  ]
  const [, servesInMs] = await Promise.all([
    Promise.all(clients.slice(0, trickling).map((client) => client.read())),
    freeze(world, { forMs, victim }),
    sleep(UNTIL_FREEZE_MS).then(() => Promise.all(clients.slice(trickling).map((client) => client.read()))),
  ])
  return { clients, servesInMs }
}

/** Resolves with the time from the continuation to the end of the first run that the gateway serves. */
async function freeze(world: World, { forMs, victim }: Pick<Plan, 'forMs' | 'victim'>): Promise<number> {
  await sleep(UNTIL_FREEZE_MS + 100) // The rushing streams have begun.
  await victim.proc.kill('SIGSTOP')
  await sleep(forMs)
  await victim.proc.kill('SIGCONT')
  return timeUntil(async () => {
    const { terminal } = await world.run(victim, { prompt: '/chain again 1 1 0' }).ended
    return terminal?.event === 'done'
  }, 3 * SERVES_WITHIN_MS)
}

function guaranteesOf(rounds: readonly Round[]): Guarantee[] {
  const readers = rounds.flatMap(({ clients }) => clients.map(({ reader }) => reader))
  const altered = readers.flatMap(({ faults }) => faults)
  const unexpected = cutsIn(rounds).filter((code) => !EXPECTED_CUTS.has(code))
  return [
    allOf('streams complete in the end', readers.filter(({ isWhole }) => isWhole).length, readers.length),
    none('gaps, reorderings, duplicates and changes', altered.length, altered[0]?.what),
    {
      ...none('streams cut for another reason than the eviction of their gateway', unexpected.length),
      detail: cutsOf(rounds),
    },
    slowest(
      'from its continuation to the first run that it serves, longest',
      rounds.map(({ servesInMs }) => servesInMs),
      SERVES_WITHIN_MS,
    ),
  ]
}

/** A gateway that was evicted ends its streams, and refuses new ones while it joins again. */
const EXPECTED_CUTS = new Set(['relay_unavailable', 'status 503'])

const cutsIn = (rounds: readonly Round[]): string[] =>
  rounds.flatMap(({ clients }) => clients.flatMap(({ cuts }) => cuts))

function cutsOf(rounds: readonly Round[]): string {
  const counts = Map.groupBy(cutsIn(rounds), (code) => code)
  return [...counts].map(([code, { length }]) => `${length} ${code}`).join(', ') || 'none'
}
