import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startRedis } from '../../../scripts/local-services/redis.ts'
import { COMPILE_CACHE } from '../../../scripts/node-options.ts'
import { createKeyring } from '../../../shared/tenancy/secrets/keyring.ts'
import { allOf, type Guarantee, noneOf } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import type { Random } from '../../harness/seed.ts'
import { AUDIENCE, Issuer } from '../../support/issuer/issuer.ts'
import { newSigner } from '../../support/issuer/signer.ts'
import { type ModelServer, startModelServer } from '../../support/model-server/model-server.ts'
import { startMongoInMemory } from '../../support/mongo-in-memory.ts'
import { call, prepare } from '../api.ts'
import { Processes, type Server } from '../processes.ts'
import { Load, type Tenant } from '../rotation/load.ts'
import { dumpMongo, findIn, findInFiles, RedisRecorder } from '../tenants/evidence.ts'

const REWRAP = fileURLToPath(new URL('../../../scripts/rewrap-keys.ts', import.meta.url))
/** A worker uses up `drainSecs`, because clients may still resume its runs. */
const FULL = { phaseMs: 10_000, pauseMs: 0, drainSecs: '10', leastRuns: 100, isFull: true }
/** It begins when the new key is announced, which changes nothing that is stored, and leaves out a start with a foreign key. */
const SHORT = { phaseMs: 400, pauseMs: 1_000, drainSecs: '3', leastRuns: 10, isFull: false }

const base64 = (key: Buffer) => key.toString('base64')

/** Rotates the master key of a cluster under load, and of a standalone form, as `scripts/rewrap-keys --help` says. */
export const rotation: Scenario = {
  id: 'P16',
  promise: 'the master key is rotated without a failed run, and no key is ever on a disk',
  run,
}

async function run({ isFull, random, say }: ScenarioOptions): Promise<Guarantee[]> {
  const issuer = await Issuer.start([await newSigner('RS256', 'r1')])
  const model = await startModelServer()
  try {
    const inCluster = await rotateCluster({ issuer, model, random, say, ...(isFull ? FULL : SHORT) })
    return [...inCluster, ...(await rotateStandalone(model, isFull))]
  } finally {
    await model.close()
    await issuer.close()
  }
}

type Scene = { issuer: Issuer; model: ModelServer; random: Random; say(line: string): void } & typeof FULL

async function rotateCluster({ issuer, model, random, say, ...form }: Scene): Promise<Guarantee[]> {
  const { phaseMs, pauseMs, drainSecs, leastRuns, isFull } = form
  await using redis = await startRedis()
  await using mongo = await startMongoInMemory()
  await using recorder = await RedisRecorder.open(redis.url)
  await using processes = new Processes({
    REDIS_URL: redis.url,
    MONGODB_URL: mongo.url,
    ALLOW_PRIVATE_URLS: 'true',
    AUTH_MODE: 'enforced',
    OIDC_ISSUER: issuer.url,
    OIDC_AUDIENCE: AUDIENCE,
    LOG_LEVEL: 'debug',
    DRAIN_SECS: drainSecs,
  })
  const [old, fresh] = [randomBytes(32), randomBytes(32)]
  const tenants = await Promise.all(['acme', 'globex'].map((name) => tenantOf(name, issuer)))
  const announcing = { MASTER_KEY: base64(old), MASTER_KEY_PREVIOUS: base64(fresh) }
  let running = await startGeneration(processes, isFull ? { MASTER_KEY: base64(old) } : announcing)
  const load = await Load.start({ model, tenants, random, url: running.gateway.url, pauseMs })
  const replace = async (env: Record<string, string>) => {
    await sleep(phaseMs)
    const next = await startGeneration(processes, env)
    load.url = next.gateway.url
    const from = performance.now()
    const codes = [await running.gateway.stop(), await running.worker.stop()]
    running = next
    say(`the former processes ended within ${Math.round(performance.now() - from)} ms`)
    return codes
  }
  const announced = isFull ? await replace(announcing) : []
  const rotating = { MASTER_KEY: base64(fresh), MASTER_KEY_PREVIOUS: base64(old) }
  const switched = await replace(rotating)
  await sleep(phaseMs)
  const rewrapped = await rewrap({ ...rotating, MONGODB_URL: mongo.url })
  const again = await rewrap({ ...rotating, MONGODB_URL: mongo.url })
  const alone = await replace({ MASTER_KEY: base64(fresh) })
  await sleep(phaseMs)
  await load.stop()
  say(`${load.runs} runs, ${tenants.map(({ keys }) => keys.length).join(' and ')} keys`)

  const keys = [load.marker, base64(old), base64(fresh)]
  const stored = await dumpMongo(mongo.url)
  const configs = stored.split('\n').filter((line) => /^\w+\.tenant_configs /.test(line))
  const under = (key: Buffer) => configs.filter((line) => line.includes(createKeyring(key).primary.id))
  const log = processes.lines.join('\n') + rewrapped.printed + again.printed
  const dirs = [processes.dataDir, ...mongo.members.map(({ dir }) => dir)]
  const onDisk = (await Promise.all(dirs.map((dir) => findInFiles(dir, keys)))).flat()
  const codes = [...announced, ...switched, ...alone, rewrapped.code, again.code]
  return [
    { title: 'runs during the rotation', value: load.runs, unit: '', goal: { atLeast: leastRuns } },
    noneOf('failed runs and changes', load.failures),
    noneOf('runs with a key that their tenant never had', load.wrongKeys()),
    noneOf('exit codes other than 0', codes.filter((code) => code !== 0).map(String)),
    allOf('second re-wrap finds nothing to do', Number(again.printed.includes(': 0 records wrapped')), 1),
    allOf('stored configurations with the new key’s id', under(fresh).length, 2),
    noneOf('stored configurations with the old key’s id', under(old)),
    noneOf('keys in MongoDB', findIn('MongoDB', stored, keys)),
    noneOf('keys in commands to Redis', findIn('a command', recorder.commands.join('\n'), keys)),
    noneOf('keys in logs', findIn('a log', log, keys)),
    noneOf('keys in files', onDisk),
  ]
}

async function tenantOf(name: string, issuer: Issuer): Promise<Tenant> {
  return { name, headers: { authorization: `Bearer ${await issuer.token(name)}` }, keys: [] }
}

type Generation = { worker: Server; gateway: Server }

/** A worker first, so that the gateway finds it when it joins. */
async function startGeneration(processes: Processes, env: Record<string, string>): Promise<Generation> {
  const worker = await processes.start('worker', env)
  return { worker, gateway: await processes.start('gateway', env) }
}

function rewrap(env: Record<string, string>): Promise<{ code: number; printed: string }> {
  return new Promise((resolve) => {
    const options = { env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: COMPILE_CACHE, ...env } }
    execFile(process.execPath, [REWRAP], options, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, printed: stdout + stderr }),
    )
  })
}

/** The same in one process and SQLite, which the command changes while the process runs; then with a key that is missing. */
async function rotateStandalone(model: ModelServer, isFull: boolean): Promise<Guarantee[]> {
  await using processes = new Processes({ LOG_LEVEL: 'debug' })
  const [old, fresh, other] = [randomBytes(32), randomBytes(32), randomBytes(32)]
  const canary = `sqlite-${randomBytes(20).toString('hex')}`
  const rotating = { MASTER_KEY: base64(fresh), MASTER_KEY_PREVIOUS: base64(old) }
  const first = await processes.start('standalone', { MASTER_KEY: base64(old) })
  const put = (path: string, body: object) => prepare(first.url, { method: 'PUT', path, body })
  await put('/config/secrets/team', { value: canary })
  await put('/config/instances/visible-name', { type: 'openai-compatible', url: model.url, secret: 'team' })
  await put('/config/engine', { routing: { main: { instance: 'visible-name', model: 'm' } } })
  const outcomes = [await runOnce(first)]
  await first.kill() // The write-ahead log stays as it is.
  const [found, control] = [
    await findInFiles(processes.dataDir, [canary]),
    await findInFiles(processes.dataDir, ['visible-name']),
  ]
  const second = await processes.start('standalone', rotating)
  outcomes.push(await runOnce(second))
  const { code } = await rewrap({ ...rotating, DATA_DIR: processes.dataDir })
  outcomes.push(await runOnce(second))
  await second.stop()
  const third = await processes.start('standalone', { MASTER_KEY: base64(fresh) })
  outcomes.push(await runOnce(third))
  await third.stop()
  const unnamed: string[] = []
  if (isFull) {
    const stranger = await processes.start('standalone', { MASTER_KEY: base64(other) })
    const refused = await runOnce(stranger)
    await stranger.stop()
    if (!refused.includes(createKeyring(fresh).primary.id)) unnamed.push(refused)
  }
  const found2 = await findInFiles(processes.dataDir, [canary, base64(old), base64(fresh)])
  return [
    allOf('runs of the standalone form that ended with done', outcomes.filter(isDone).length, 4),
    noneOf('re-wrap of a running server ended with another code than 0', code === 0 ? [] : [String(code)]),
    allOf('names found in SQLite’s files', Math.min(1, control.length), 1),
    noneOf('keys in SQLite’s files', [...found, ...found2]),
    noneOf('keys in its logs', findIn('a log', processes.lines.join('\n'), [canary, base64(old), base64(fresh)])),
    noneOf('run without the master key not refused with its id', unnamed),
  ]
}

const isDone = (outcome: string): boolean => /event: done\n/.test(outcome)

async function runOnce({ url }: Server): Promise<string> {
  const { status, text } = await call(url, { method: 'POST', path: '/agent/run', body: { prompt: 'hello' } })
  return `${status} ${text}`
}
