import { setTimeout as sleep } from 'node:timers/promises'
import { allOf, type Guarantee, quantileOf, slowest } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import type { Random } from '../../harness/seed.ts'
import { noViolations } from '../checker.ts'
import { now } from '../history.ts'
import { endsOf, openRuns, readAgain, tally } from '../load.ts'
import { paced } from '../prompts.ts'
import { createSessions, gatewayFor } from '../sessions.ts'
import type { Ended, StreamClient } from '../stream-client.ts'
import { World } from '../world.ts'

type Size = { workers: number; rounds: number; streams: number; sessions: number }

const SHORT: Size = { workers: 2, rounds: 1, streams: 16, sessions: 8 }
const FULL: Size = { workers: 4, rounds: 40, streams: 200, sessions: 40 }

/** 6.5 s, longer than the detection of a dead worker takes, in frames of about 200 bytes. */
const PROMPT = paced({ count: 65, everyMs: 100 })
const END_WITHIN_MS = 20_000
const READ_AGAIN = 10

/** Kills a worker under live streams, in many rounds, and replaces it each time. */
export const killWorker: Scenario = {
  id: 'P1',
  promise: 'the streams of a dead worker end with worker_lost, and streams of other workers lose nothing',
  run: measure,
}

async function measure({ isFull, random, say }: ScenarioOptions): Promise<Guarantee[]> {
  const size = isFull ? FULL : SHORT
  await using world = await World.open({ random, workers: size.workers })
  const rounds: Round[] = []
  for (let n = 1; n <= size.rounds; n++) {
    const round = await killUnderLoad(world, size, random.fork(`round ${n}`))
    rounds.push(round)
    world.endRound()
    say(`round ${n}: ${round.victim}'s streams: ${tally(round.lost)}; other workers': ${tally(round.others)}`)
  }
  return guaranteesOf(rounds, world, isFull)
}

type Round = {
  victim: string
  killedAt: number
  lost: (Ended | undefined)[]
  others: (Ended | undefined)[]
  /** The dead worker's sessions: those that are 404, and those that could be created again at once. */
  sessions: { lost: number; gone: number; recreated: number }
}

async function killUnderLoad(world: World, { streams, sessions }: Size, random: Random): Promise<Round> {
  const opened = await openRuns(world, streams, () => PROMPT)
  const ids = await createSessions(world, sessions)
  await sleep(random.between(0, 500))
  // After three deaths in a minute, new workers get no runs for a while. The victim is a worker that has some.
  const victim = random.pick(world.workers.filter((worker) => opened.some(({ run }) => world.ownerOf(run) === worker)))
  const isLost = ({ run, hasEnded }: StreamClient) => !hasEnded && world.ownerOf(run) === victim
  const { lost = [], others = [] } = Object.groupBy(opened, (stream) => (isLost(stream) ? 'lost' : 'others'))
  const killedAt = now()
  await world.kill(victim)
  const replaced = world.start('worker')
  const lostEnds = await endsOf(lost, END_WITHIN_MS)
  const found = await checkSessions(world, ids)
  const otherEnds = await endsOf(others, END_WITHIN_MS)
  await readAgain(world, random.shuffle(others).slice(0, READ_AGAIN))
  await replaced
  return { victim: victim.name, killedAt, lost: lostEnds, others: otherEnds, sessions: found }
}

/** Reads each session and then creates it, which succeeds only if it does not exist. */
async function checkSessions(world: World, ids: readonly string[]): Promise<Round['sessions']> {
  const found = await Promise.all(
    ids.map(async (id, n) => {
      const before = await world.ask(gatewayFor(world, n), { path: `/sessions/${id}` })
      const again = await world.ask(gatewayFor(world, n + 1), { path: '/sessions', body: { session_id: id } })
      return { before: before.status, again: again.status }
    }),
  )
  const lost = found.filter(({ before }) => before !== 200)
  return {
    lost: lost.length,
    gone: lost.filter(({ before }) => before === 404).length,
    recreated: lost.filter(({ again }) => again === 201).length,
  }
}

function guaranteesOf(rounds: readonly Round[], world: World, isFull: boolean): Guarantee[] {
  const lost = rounds.flatMap((round) => round.lost)
  const others = rounds.flatMap((round) => round.others)
  const reported = rounds.flatMap(({ killedAt, lost: ends }) => timesOf(ends, killedAt))
  const sessions = (what: keyof Round['sessions']) => rounds.reduce((sum, round) => sum + round.sessions[what], 0)
  const done = others.filter((ended) => ended?.terminal?.event === 'done')
  return [
    allOf('streams of the dead worker that ended with worker_lost', reported.length, lost.length),
    // The streams of one worker end together, so that a median needs many deaths.
    ...(isFull ? [quantileOf('from the kill to worker_lost, p50', reported, { part: 0.5, atMost: 4200 })] : []),
    slowest('from the kill to worker_lost, longest', reported, 5000),
    allOf('streams of other workers done', done.length, others.length),
    allOf('sessions of the dead worker that are 404', sessions('gone'), sessions('lost')),
    allOf('those created again at once', sessions('recreated'), sessions('lost')),
    noViolations(world.check()),
  ]
}

const timesOf = (ends: readonly (Ended | undefined)[], killedAt: number): number[] =>
  ends.flatMap((ended) => (ended?.terminal?.code === 'worker_lost' ? [ended.terminal.t - killedAt] : []))
