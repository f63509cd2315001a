import { randomBytes } from 'node:crypto'
import { startRedis } from '../../../scripts/local-services/redis.ts'
import { allOf, type Guarantee, noneOf } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import { AUDIENCE, Issuer } from '../../support/issuer/issuer.ts'
import { newSigner } from '../../support/issuer/signer.ts'
import { type ModelServer, startModelServer } from '../../support/model-server/model-server.ts'
import { startMongoInMemory } from '../../support/mongo-in-memory.ts'
import { call } from '../api.ts'
import { Processes, type Server } from '../processes.ts'
import { dumpMongo, findIn, findInFiles, RedisRecorder } from '../tenants/evidence.ts'
import { type Owned, ownEverything } from '../tenants/owner.ts'
import { type ApiRoute, routesOfApi } from '../tenants/routes.ts'
import { tryWalls, type Walls } from '../tenants/walls.ts'
import { Sink } from '../uploads/sink.ts'

/** One tenant has one of everything; another one names all of it on every route. */
export const tenants: Scenario = {
  id: 'P11',
  promise:
    'tenants are walls: what another one has is answered like what nobody has, and no key is ever shown or stored',
  run,
}

async function run({ isFull }: ScenarioOptions): Promise<Guarantee[]> {
  const issuer = await Issuer.start([await newSigner('RS256', 'r1')])
  const model = await startModelServer()
  model.models = ['m']
  try {
    return await attack({ issuer, model, isFull })
  } finally {
    await model.close()
    await issuer.close()
  }
}

type Scene = { issuer: Issuer; model: ModelServer; isFull: boolean }

async function attack({ issuer, model, isFull }: Scene): Promise<Guarantee[]> {
  await using redis = await startRedis()
  await using mongo = await startMongoInMemory()
  await using backend = await Sink.start()
  await using recorder = await RedisRecorder.open(redis.url)
  await using processes = new Processes({
    REDIS_URL: redis.url,
    MONGODB_URL: mongo.url,
    MASTER_KEY: randomBytes(32).toString('base64'),
    ALLOW_PRIVATE_URLS: 'true',
    AUTH_MODE: 'enforced',
    OIDC_ISSUER: issuer.url,
    OIDC_AUDIENCE: AUDIENCE,
    LOG_LEVEL: 'debug',
    DIALECTS: 'ui,mcp',
    MODEL: 'test-model',
    MODEL_PROVIDER: 'openai-compatible',
    MODEL_BASE_URL: model.url,
  })
  const [worker, executor] = await Promise.all([processes.start('worker'), processes.start('executor')])
  const gateways = await Promise.all([processes.start('gateway'), processes.start('gateway')])
  const urls = gateways.map(({ url }) => url)
  const [url = ''] = urls
  const as = async (client: string) => ({ authorization: `Bearer ${await issuer.token(client)}` })
  const [owner, stranger] = [await as('acme'), await as('globex')]

  const owned = await ownEverything({ url, headers: owner, model, backend })
  const before = await settled(() => stateOf(url, owner, owned))
  const routes = routesOfApi()
  const canaries = [...owned.canaries.keys, ...owned.canaries.contents]
  const walls = await tryWalls(routes, {
    urls,
    headers: stranger,
    theirs: owned.ids,
    cursors: owned.cursors,
    canaries,
    isFull,
  })
  const after = await stateOf(url, owner, owned)
  const metrics = await metricsOf([worker, executor, ...gateways])
  owned.waiting.leave()
  const stored = `${await dumpMongo(mongo.url)}\n${recorder.commands.join('\n')}`
  const dirs = [processes.dataDir, ...mongo.members.map(({ dir }) => dir)]
  const onDisk = (await Promise.all(dirs.map((dir) => findInFiles(dir, owned.canaries.keys)))).flat()
  return [
    ...wallGuarantees(routes, walls),
    { title: 'cursors of lists of the other tenant', value: owned.cursors.length, unit: '', goal: { atLeast: 6 } },
    noneOf('changes of the other tenant’s things', before === after ? [] : [`${before} became ${after}`]),
    noneOf('contents or keys in metrics', findIn('a metric', metrics, [...canaries, ...Object.values(owned.ids)])),
    noneOf('contents in logs', findIn('a log', processes.lines.join('\n'), owned.canaries.contents)),
    ...keyGuarantees(owned, { model, log: processes.lines.join('\n'), stored, onDisk }),
  ]
}

function wallGuarantees(routes: readonly ApiRoute[], walls: Walls): Guarantee[] {
  const { requests, missing, differences, leaks } = walls
  return [
    { title: 'routes found in the router', value: routes.length, unit: '', goal: { atLeast: 25 } },
    noneOf('routes without a fixture', missing),
    { title: 'requests with ids of another tenant or of nobody', value: requests, unit: '', goal: { atLeast: 300 } },
    noneOf('answers that differ from those for ids of nobody', differences),
    noneOf('answers with something of the other tenant', leaks),
  ]
}

type Evidence = { model: ModelServer; log: string; stored: string; onDisk: string[] }

/** The first rows show that the searches find what is there. */
function keyGuarantees({ canaries: { keys, contents }, ids, answers }: Owned, evidence: Evidence): Guarantee[] {
  const sent = JSON.stringify(evidence.model.requests.map(({ headers }) => headers))
  const atProvider = keys.slice(0, 3).filter((key) => sent.includes(key))
  const control = [ids.instance, ...contents].filter((text) => evidence.stored.includes(text))
  return [
    allOf('keys that the providers received', atProvider.length, 3),
    allOf('names and contents found in the databases', control.length, 1 + contents.length),
    noneOf('keys in answers and events of their own tenant', findIn('an answer', answers, keys)),
    noneOf('keys in logs', findIn('a log', evidence.log, keys)),
    noneOf('keys in MongoDB and in commands to Redis', findIn('a database', evidence.stored, keys)),
    noneOf('keys in files', evidence.onDisk),
  ]
}

/** Times of last use, and what is used of limits, which processes report a little later. */
const VARYING = /"last_\w+":"[^"]*"|"used":\{[^}]*\}|"room":\[[^\]]*\]/g

/** The answers that the owner gets about its own things. */
async function stateOf(url: string, headers: Record<string, string>, { ids }: Owned): Promise<string> {
  const paths = [
    `/sessions/${ids.session}`,
    `/runs/${ids.run}`,
    '/permissions',
    `/customers/${ids.customer}/ledger`,
    '/config/engine',
    `/config/instances/${ids.instance}`,
    `/config/instances/${ids.instance}/capabilities`,
    `/config/secrets/${ids.secret}`,
    `/config/webhooks/${ids.webhook}`,
    `/flows/${ids.flow}`,
    `/flows/${ids.flow}/memory`,
    '/flows/summarize/memory',
    '/dispatches',
    `/dispatches/${ids.trace}`,
  ]
  const replies = await Promise.all(paths.map((path) => call(url, { method: 'GET', path, headers })))
  return replies.map(({ status, text }) => `${status} ${text.replaceAll(VARYING, '')}`).join('\n')
}

/** What is the same twice: the runs of the owner may still be on their way to where they wait. */
async function settled(read: () => Promise<string>): Promise<string> {
  for (let last = await read(); ; ) {
    const now = await read()
    if (now === last) return now
    last = now
  }
}

async function metricsOf(servers: readonly Server[]): Promise<string> {
  const replies = await Promise.all(servers.map(({ opsUrl }) => call(opsUrl, { method: 'GET', path: '/metrics' })))
  return replies.map(({ text }) => text).join('\n')
}
