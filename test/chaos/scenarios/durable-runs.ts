import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ensureMongod } from '../../../scripts/local-services/mongo-server.ts'
import { allOf, type Guarantee, noneOf, quantileOf } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import { startMongoInMemory } from '../../support/mongo-in-memory.ts'
import { createSessions } from '../sessions.ts'
import { World } from '../world.ts'
import { noFindings, Talk } from './durable-runs/talk.ts'

type Size = { sessions: number; kills: number; everyMs: number; workers: number }

const SHORT: Size = { sessions: 4, kills: 1, everyMs: 2_000, workers: 2 }
const FULL: Size = { sessions: 200, kills: 60, everyMs: 10_000, workers: 4 }
const PAUSE_MS = 6_000

/** Kills one worker after the other while clients talk in sessions, and replaces each. */
export const durableRuns: Scenario = {
  id: 'P21',
  promise: 'with DURABILITY=runs the death of a worker ends no stream, changes no event, and repeats no effect',
  run: measure,
}

async function measure({ isFull, random, say }: ScenarioOptions): Promise<Guarantee[]> {
  const size = isFull ? FULL : SHORT
  await ensureMongod(say)
  await using mongo = await startMongoInMemory()
  const tools = { ENABLE_BASH: 'true', TOOL_PERMISSIONS: '{"Bash":"allow"}' }
  const env = { MONGODB_URL: mongo.url, DURABILITY: 'runs', DRAIN_SECS: '0', ...tools }
  await using world = await World.open({ random, workers: size.workers, env })
  const ids = await createSessions(world, size.sessions)
  const findings = noFindings()
  let isOver = false
  const talks = ids.map((id, n) => new Talk(world, { id, n }, findings).until(() => isOver))
  for (let kill = 1; kill <= size.kills; kill++) {
    await sleep(size.everyMs - random.between(0, 500))
    await world.kill(random.pick(world.workers))
    await world.start('worker')
    world.history.length = 0
    say(`kill ${kill}: ${findings.messages} messages, ${findings.recovered} runs recovered`)
  }
  isOver = true
  await Promise.all(talks)
  const marks = effectsIn(world.dataDir)
  const repeated = [...Map.groupBy(marks, (mark) => mark)].flatMap(([mark, all]) => (all.length > 1 ? [mark] : []))
  const { messages, pausesMs, recovered, ended, lost, changed, broken } = findings
  for (const what of [...ended, ...lost, ...changed, ...broken, ...repeated].slice(0, 20)) say(what)
  return [
    allOf('messages that were answered', messages - ended.length, messages),
    allOf('runs that another worker went on with', recovered, 1),
    noneOf('streams that the death of a worker ended', ended),
    noneOf('sessions that were lost', lost),
    noneOf('events that were doubled or changed', changed),
    noneOf('streams with a hole, or another text', broken),
    noneOf(`effects that were repeated, of ${marks.length}`, repeated),
    quantileOf('pause until another worker goes on, p99', pausesMs, { part: 0.99, atMost: PAUSE_MS }),
  ]
}

/** The lines of the files that the tools have written. */
function effectsIn(folder: string): string[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('effects.txt'),
  )
  return files.flatMap((file) => readFileSync(join(folder, file), 'utf8').trim().split('\n'))
}
