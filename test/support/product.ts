import { openExecutorMember } from '../../services/executor/member.ts'
import { openGatewayMember } from '../../services/gateway/member.ts'
import { openStandalone } from '../../services/standalone/standalone.ts'
import { openWorkerMember } from '../../services/worker/member.ts'
import { createLog } from '../../shared/kernel/log.ts'
import { loadConfig } from '../../shared/platform/config/config.ts'
import type { Form } from '../../shared/platform/config/fields.ts'
import { groupSettings } from '../../shared/platform/config/groups.ts'
import { callApi, initOf, openStream, type Reply } from './api-client.ts'
import { startCluster } from './cluster.ts'
import { startClusterRedis } from './cluster-redis.ts'
import type { EventStream } from './event-stream.ts'
import { useOpened } from './fixture.ts'
import { type ModelServer, startModelServer } from './model-server/model-server.ts'
import { makeTempFolder } from './temp-folder.ts'

export type { Reply } from './api-client.ts'

/** A running product with its model server. Every answer and frame is checked against the API description. */
export type Product = {
  /** Base URL of one gateway, without a slash at the end. */
  url: string
  /** Those of all gateways. */
  urls: readonly string[]
  /** How many processes run agents. */
  workerCount: number
  model: ModelServer
  dataDir: string
  /** The ops listeners of all its processes. */
  opsUrls: readonly string[]
  /** The log lines of all its processes so far. */
  readonly log: readonly string[]
  /** Calls the API; a body is sent as JSON. Requests go to the gateways in turn. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>
  /** Opens a stream: POST with a body, GET without. */
  stream(path: string, body?: unknown, headers?: Record<string, string>): Promise<EventStream>
  run(body: unknown, headers?: Record<string, string>): Promise<EventStream>
  close(): Promise<void>
}

export type StartProduct = (env?: Record<string, string>) => Promise<Product>

/** Defines tests that run against both forms of the product. */
export function inBothForms(title: string, define: (startProduct: StartProduct, form: Form) => void): void {
  for (const form of ['standalone', 'cluster'] as const) {
    describe(`${title}, ${form}`, () => define((env) => startProduct(FORMS[form], env), form))
  }
}

/**
 * Defines tests of what the process that a request reaches decides by itself, and of what the engine does with an answer of its model: a cluster has
 * the same code for it, so that its start shows nothing more.
 */
export function inStandaloneForm(title: string, define: (startProduct: StartProduct, form: Form) => void): void {
  describe(title, () => define(startStandalone, 'standalone'))
}

/** A product for the tests of the enclosing `describe`. */
export function useProduct(start: () => Promise<Product>): Product {
  return useOpened(start)
}

type Opened = {
  opsUrls: readonly string[]
  urls: readonly string[]
  workerCount: number
  log: () => readonly string[]
  close(): Promise<void>
}

type Member = Awaited<ReturnType<typeof openGatewayMember>>

const ROLES = { gateway: openGatewayMember, worker: openWorkerMember, executor: openExecutorMember }

const FORMS: Record<Form, (env: Record<string, string>) => Promise<Opened>> = {
  standalone: openInProcess,
  cluster: openMembers,
}

/** Starts the standalone form in this process. */
export const startStandalone: StartProduct = (env) => startProduct(openInProcess, env)

/** Starts the members of the cluster form in this process. */
export const startMembers: StartProduct = (env) => startProduct(openMembers, env)

/** Starts the cluster form in separate processes, one of each role. */
export const startClusterProcesses: StartProduct = (env) => startProduct(openProcesses, env)

/** Starts the product with a model server that speaks the openai-compatible wire format. */
async function startProduct(
  open: (env: Record<string, string>) => Promise<Opened>,
  env: Record<string, string> = {},
): Promise<Product> {
  const model = await startModelServer()
  const folder = await makeTempFolder()
  const opened = await open({
    PORT: '0',
    OPS_PORT: '0',
    DATA_DIR: folder.path,
    RATE_LIMIT_RPM: '0',
    DRAIN_SECS: '0',
    MODEL: 'test-model',
    MODEL_PROVIDER: 'openai-compatible',
    MODEL_BASE_URL: model.url,
    MODEL_PRICES: '{"test-model":{"input":1,"output":10,"cache_read":0.1}}',
    ...durability(open, env),
    ...env,
  }).catch(async (cause: unknown) => {
    await model.close()
    throw cause
  })
  let calls = 0
  const nextUrl = (path: string) => `${opened.urls[calls++ % opened.urls.length]}${path}`
  return {
    url: opened.urls[0] ?? '',
    urls: opened.urls,
    workerCount: opened.workerCount,
    opsUrls: opened.opsUrls,
    model,
    dataDir: folder.path,
    get log() {
      return opened.log()
    },
    call: (method, path, body, headers) => callApi(nextUrl(path), initOf(method, body, headers)),
    stream: (path, body, headers) =>
      openStream(nextUrl(path), initOf(body === undefined ? 'GET' : 'POST', body, headers)),
    run: (body, headers) => openConfirmed(() => openStream(nextUrl('/agent/run'), initOf('POST', body, headers))),
    async close() {
      await opened.close()
      await model.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}

/** With TEST_DURABILITY=sessions or =runs all tests run in that mode (D32) wherever the product has a store. */
function durability(open: (typeof FORMS)[Form], env: Record<string, string>): Record<string, string> {
  const { TEST_DURABILITY: mode } = process.env
  const hasStore = open === openInProcess || env['MONGODB_URL'] !== undefined
  return mode && hasStore ? { DURABILITY: mode } : {}
}

const TRIES = 5

/** Opens the stream of a run, again when no worker has confirmed the run in time, as it happens on a busy machine: it has not begun then. */
async function openConfirmed(open: () => Promise<EventStream>): Promise<EventStream> {
  for (let tries = 1; ; tries++) {
    try {
      return await open()
    } catch (cause) {
      if (tries === TRIES || !String(cause).includes('"code":"worker_silent"')) throw cause
    }
  }
}

async function openInProcess(env: Record<string, string>): Promise<Opened> {
  const config = loadConfig(env, 'standalone')
  const lines: string[] = []
  const log = createLog({ level: config.logLevel, secrets: config.secrets, write: (line) => lines.push(line) })
  const { url, opsUrl, closers } = await openStandalone(groupSettings(config), log)
  const close = async () => {
    for (const closer of closers) await closer.close()
  }
  return { urls: [url], opsUrls: [opsUrl], workerCount: 1, log: () => lines, close }
}

/**
 * Starts two gateways, two workers and, with a MONGODB_URL, an executor in this process, each with connections of its own to a Redis
 * that they share. A start takes a tenth of the CPU time of separate processes.
 */
async function openMembers(env: Record<string, string>): Promise<Opened> {
  const redis = await startClusterRedis()
  const config = loadConfig({ API_EXPLORER: 'true', HOST: '127.0.0.1', ...env, ...redis.env }, 'cluster')
  const lines: string[] = []
  const members: Member[] = []
  const open = async (role: keyof typeof ROLES) => {
    const log = createLog({ level: config.logLevel, secrets: config.secrets, write: (line) => lines.push(line) })
    const member = await ROLES[role](groupSettings(config), log)
    members.push(member)
    return member
  }
  const close = async () => {
    await Promise.all(members.map(closeMember))
    await redis.stop()
  }
  try {
    // Gateways last, so that each finds the others when it joins.
    await Promise.all([open('worker'), open('worker'), ...(config.mongodbUrl === undefined ? [] : [open('executor')])])
    const gateways = await Promise.all([open('gateway'), open('gateway')])
    const urls = gateways.map(({ ready }) => String(ready['url']))
    const opsUrls = members.map(({ ready }) => String(ready['ops_url']))
    return { urls, opsUrls, workerCount: 2, log: () => lines, close }
  } catch (cause) {
    await close()
    throw cause
  }
}

async function closeMember({ closers }: Member): Promise<void> {
  for (const closer of closers) await closer.close()
}

async function openProcesses(env: Record<string, string>): Promise<Opened> {
  const { urls, gateways, workers, executors, close } = await startCluster(
    { API_EXPLORER: 'true', ...env },
    { gateway: 1, worker: 1 },
  )
  const log = () => [...gateways, ...workers, ...executors].flatMap(({ output }) => output.split('\n'))
  const opsUrls = log().flatMap((line) => /"ops_url":"([^"]+)"/.exec(line)?.[1] ?? [])
  return { urls, opsUrls, workerCount: workers.length, log, close }
}
