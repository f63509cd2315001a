import { setTimeout as sleep } from 'node:timers/promises'
import type { Bench } from '../bench.ts'
import { Client } from '../client.ts'
import { startFlowCluster } from '../cluster.ts'
import {
  doAtOnce,
  openWorkCounter,
  perPiece,
  shownNumbers,
  totalOf,
  type Work,
  workBetween,
} from '../database-calls.ts'
import { GATEWAY } from '../dialect.ts'
import type { Figure, Measured } from '../figure.ts'
import { openFlowService } from '../flow-service.ts'
import { median } from '../statistics.ts'

const WARM_UP = 30
/** Pieces after which V8 compiles little more, which takes a third of the CPU of the first ones. */
const COMPILED = 1_000
const QUICK_COMPILED = 60
const AT_ONCE = 16
const IDLE_MS = 2_000
/** After this time the work that follows an answer is done, and is counted with it. */
const SETTLE_MS = 300

type Do = () => Promise<void>

/** The commands that MongoDB gets from all processes for one piece of queued work, while nothing else waits. */
export const queuedWork: Figure[] = [
  {
    name: 'flow-run-calls',
    title: "MongoDB's commands for a flow run",
    goal: { atMost: 4 },
    unit: ' calls',
    measure: (bench) => measureFlow(bench),
  },
  ...[1, 8].map(
    (steps): Figure => ({
      name: `plan-${steps}-calls`,
      title: `the same for a plan of ${steps === 1 ? 'one step' : `${steps} steps`}`,
      goal: { atMost: 5 + steps },
      unit: ' calls',
      measure: (bench) => measurePlan(bench, steps),
    }),
  ),
]

async function measureFlow(bench: Bench): Promise<Measured> {
  await using cluster = await startFlowCluster(bench)
  using service = await openFlowService(cluster, { bench, counts: [0] })
  await using counter = await openWorkCounter(cluster)
  return await measureWork(() => service.run(0), { bench, read: () => counter.read() })
}

async function measurePlan(bench: Bench, steps: number): Promise<Measured> {
  const provider = await bench.jsonProvider()
  const url = `http://127.0.0.1:${provider.port}/after-0/v1`
  const model = { MODEL_PROVIDER: 'openai-compatible', MODEL: 'bench', MODEL_BASE_URL: url }
  await using cluster = await startFlowCluster(bench, model)
  await using counter = await openWorkCounter(cluster)
  using client = new Client({ port: cluster.port, dialect: GATEWAY }, bench.signal)
  const plan = { steps: stepsOf(steps) }
  const run = async () => {
    const { id } = (await client.json(`${cluster.basePath}/plans/submit`, plan)) as { id: string }
    await client.readToEnd(`${cluster.basePath}/plans/${id}/events`, '"status":"done"')
  }
  return await measureWork(run, { bench, read: () => counter.read() })
}

/** Each step depends on the one before it. */
const stepsOf = (count: number) =>
  Array.from({ length: count }, (_, i) => ({
    id: `s${i}`,
    prompt: 'Say yes.',
    ...(i > 0 && { depends_on: [`s${i - 1}`] }),
  }))

/** Does the work one after the other, which is what the value counts, and then many at once. */
async function measureWork(work: Do, { bench, read }: { bench: Bench; read(): Promise<Work> }): Promise<Measured> {
  for (let i = 0; i < WARM_UP; i++) await work()
  await doAtOnce(work, { count: bench.pick(COMPILED, QUICK_COMPILED), atOnce: AT_ONCE })
  const idle = await during(read, () => sleep(IDLE_MS, undefined, { signal: bench.signal }))
  const times: number[] = []
  const count = bench.pick(150, 40)
  const alone = await during(read, async () => {
    for (let i = 0; i < count; i++) {
      const start = performance.now()
      await work()
      times.push(performance.now() - start)
    }
  })
  const together = await during(read, () => doAtOnce(work, { count: 4 * count, atOnce: AT_ONCE }))
  const each = (done: Done, n: number) => perPiece(done.work, { idle: idle.work, share: idle.ms / done.ms, count: n })
  const [one, many] = [each(alone, count), each(together, 4 * count)]
  return {
    value: totalOf(one.mongo),
    detail: [
      `one at a time p50 ${median(times).toFixed(1)} ms, ${shown(one)}`,
      `${AT_ONCE} at a time ${((4 * count) / (together.ms / 1000)).toFixed(0)}/s, ${shown(many)}`,
    ].join('; '),
  }
}

const MOST_NAMES = 8

const shown = ({ mongo, redis, cpuMs }: Work): string =>
  `MongoDB ${totalOf(mongo).toFixed(1)} (${shownNumbers(mongo)}), Redis ${totalOf(redis).toFixed(0)} (${shownNumbers(redis, MOST_NAMES)}), ` +
  `CPU ${totalOf(cpuMs).toFixed(1)} ms (${shownNumbers(cpuMs)})`

type Done = { work: Work; ms: number }

async function during(read: () => Promise<Work>, act: Do): Promise<Done> {
  const [before, start] = [await read(), performance.now()]
  await act()
  const ms = performance.now() - start
  await sleep(SETTLE_MS)
  return { work: workBetween(before, await read()), ms }
}
