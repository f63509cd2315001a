import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect, parseArgs } from 'node:util'
import { epochOfRun } from '../../shared/kernel/ids.ts'
import { callApi, initOf } from '../support/api-client.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { type ModelServer, startModelServer } from '../support/model-server/model-server.ts'
import { startMongoInMemory } from '../support/mongo-in-memory.ts'
import { until } from '../support/until.ts'

const USAGE = `usage: npm run try:waiting -- [--count 30]

Two runs are at work in a cluster with concurrent_runs 2, and so many starts of all priorities wait. Then the worker of some of them gets kill -9, and in a
second round SIGTERM. It prints the places before and after, the order in which the model was asked, and how many were at work at most. It exits with 1
where places were lost or given twice, where more than two were at work, or where a start ran other than once. It takes a minute.
`

const { values } = parseArgs({
  options: { count: { type: 'string', default: '30' }, help: { type: 'boolean', default: false } },
})

const LIMIT = 2
/** Longer than a process may have an old limit. */
const KNOWN_MS = 3_000
const PATIENCE = { withinMs: 60_000, everyMs: 200 }
const PRIORITIES = ['interactive', 'normal', 'batch'] as const

/** What the model was asked, in order, and how much of it at the same time at most. */
class Heard {
  readonly prompts: string[] = []
  readonly #atWork = new Set<string>()
  most = 0
  readonly hold = Promise.withResolvers<void>()

  async answer(prompt: string): Promise<string> {
    this.prompts.push(prompt)
    this.#atWork.add(prompt) // One that goes on elsewhere is asked again.
    this.most = Math.max(this.most, this.#atWork.size)
    await (prompt.startsWith('held') ? this.hold.promise : sleep(100))
    this.#atWork.delete(prompt)
    return 'fine'
  }
}

async function main(): Promise<boolean> {
  const [mongo, model] = [await startMongoInMemory(), await startModelServer()]
  const env = {
    ...{ MONGODB_URL: mongo.url, MONGODB_DB: 'try_waiting', DURABILITY: 'runs', RATE_LIMIT_RPM: '0' },
    ...{ MODEL: 'test-model', MODEL_PROVIDER: 'openai-compatible', MODEL_BASE_URL: model.url },
    ...{ MASTER_KEY: randomBytes(32).toString('base64'), ALLOW_PRIVATE_URLS: 'true', DRAIN_SECS: '20' },
  }
  const cluster = await startCluster(env, { worker: 3, executor: 0 })
  const first = await tryDeath('SIGKILL', cluster, model)
  const second = await tryDeath('SIGTERM', cluster, model)
  await cluster.close()
  await model.close()
  await mongo.stop()
  return first && second
}

async function tryDeath(how: 'SIGKILL' | 'SIGTERM', cluster: Cluster, model: ModelServer): Promise<boolean> {
  const heard = new Heard()
  model.otherwise(({ prompt }) => heard.answer(prompt))
  const call = async (method: string, path: string, body?: unknown) =>
    (await callApi(`${cluster.urls[0]}${path}`, initOf(method, body))).body as Record<string, unknown>
  const start = async (prompt: string, more: object = {}) =>
    String((await call('POST', '/agent/run', { prompt, background: true, ...more }))['run_id'])
  await call('PUT', '/config/limits', { concurrent_runs: LIMIT })
  await sleep(KNOWN_MS)
  const held = [await start('held 1'), await start('held 2')]
  await until(() => heard.prompts.length === LIMIT, { what: 'two to be at work', ...PATIENCE })
  const count = Number(values.count)
  const startOne = (i: number) => start(`waits ${i}`, { wait_secs: 300, priority: PRIORITIES[i % 3] })
  const waiting = await Promise.all(Array.from({ length: count }, (_, i) => startOne(i)))
  const places = () =>
    Promise.all(waiting.map(async (id) => (await call('GET', `/runs/${id}`).catch(() => ({ place: -1 })))['place']))
  const areWhole = async () => {
    const found = await places()
    return (
      new Set(found).size === count && found.every((place) => Number(place) >= 1 && Number(place) <= count) && found
    )
  }
  const before = await until(areWhole, { what: 'each to have its place', ...PATIENCE })
  const epoch = epochOfRun(waiting[0] ?? '')
  const victim = cluster.workers.find(({ output }) => output.includes(`wk_${epoch}"`))
  const since = performance.now()
  if (how === 'SIGKILL') await victim?.kill('SIGKILL')
  else void victim?.stop(40_000)
  await cluster.startWorker()
  const after = await until(areWhole, { what: 'each to have its place again', ...PATIENCE })
  const afterMs = Math.round(performance.now() - since)
  heard.hold.resolve()
  const isDone = async (id: string) =>
    (await call('GET', `/runs/${id}`).catch(() => ({ status: '' })))['status'] === 'done'
  for (const id of [...held, ...waiting]) await until(() => isDone(id), { what: `${id} to be done`, ...PATIENCE })
  const isFree = async () =>
    ((await call('GET', '/config/limits'))['used'] as Record<string, number>)['concurrent_runs'] === 0
  await until(isFree, { what: 'all places to be free', ...PATIENCE })
  const own = heard.prompts.filter((prompt) => prompt.startsWith('waits'))
  const isKept = inspect(orders(before)) === inspect(orders(after))
  const isOnce = own.length === count && new Set(own).size === count
  const facts = {
    places_kept: isKept,
    after_ms: afterMs,
    once: isOnce,
    most_at_work: heard.most,
    order: own.join(', '),
  }
  process.stdout.write(`${how}: ${inspect(facts, { breakLength: Number.POSITIVE_INFINITY })}\n`)
  return isKept && isOnce && heard.most <= LIMIT
}

/** The starts of each priority by their places: one of a lower priority goes ahead every five seconds. */
const orders = (places: readonly unknown[]) =>
  PRIORITIES.map((_, of) =>
    [...places.keys()]
      .filter((i) => i % 3 === of)
      .toSorted((one, other) => Number(places[one]) - Number(places[other])),
  )

if (values.help) process.stdout.write(USAGE)
else process.exitCode = (await main()) ? 0 : 1
