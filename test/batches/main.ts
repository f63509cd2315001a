import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { type Child, spawnChild } from '../../scripts/local-services/child.ts'
import { retryUntil } from '../../shared/kernel/async/retry.ts'
import type { ApiType } from '../../shared/platform/api/api-type.ts'
import { startClusterRedis } from '../support/cluster-redis.ts'
import { serveFetch } from '../support/mcp-server/http.ts'
import { type ModelServer, startModelServer } from '../support/model-server/model-server.ts'
import { startMongoInMemory } from '../support/mongo-in-memory.ts'
import { VendorBatchServer } from '../support/vendor-batches.ts'

const USAGE = `usage: npm run try:batch -- [--items 1000] [--live] [--tool] [--kill-secs 20] [--answer-secs 15] [--hours 24]

Runs a flow for so many inputs in a cluster of processes, of which one gateway, one worker and one executor are killed (SIGKILL) and started again, so many
seconds after the last ones were there. Without --live the calls go to batches of the vendor, which answers each after so many seconds, and one item in fifty needs a second call. Prints a row, and
exits with 1 where an item has not one good result, a call was in two batches, the cost is above 0.55 of live, or more than one in a thousand items has missed the deadline of so many hours. With --tool
each item calls a tool that may change something between two turns, and it is one where a tool was called twice. It takes minutes.
`

const { values } = parseArgs({
  options: {
    items: { type: 'string', default: '1000' },
    live: { type: 'boolean', default: false },
    tool: { type: 'boolean', default: false },
    'kill-secs': { type: 'string', default: '20' },
    'answer-secs': { type: 'string', default: '15' },
    hours: { type: 'string', default: '24' },
    help: { type: 'boolean', default: false },
  },
})

type Batch = ApiType<'FlowBatch'>
type Result = ApiType<'FlowBatchResult'>
type Role = 'gateway' | 'worker' | 'executor'
type Env = Record<string, string>

const COUNT = Number(values.items)
const PRICE = { input: 10, output: 20 }
const USAGE_OF_CALL = { input: 1_000, output: 100 }
const CORRECTED = 50
const LOOK_MS = 1_000
const TOOL = 'mcp__counter__count'
const GOOD = '{"answer":"yes"}'
const textSchema = (name: string) => ({ type: 'object', properties: { [name]: { type: 'string' } }, required: [name] })

async function tryBatch(): Promise<boolean> {
  const [mongo, redis, model] = await Promise.all([startMongoInMemory(), startClusterRedis(), openModel()])
  const vendor = await new VendorBatchServer(model).listen()
  const answering = answerLate(vendor)
  const counter = await startCounter()
  const cluster = await Cluster.start({
    ...redis.env,
    ...{ MONGODB_URL: mongo.url, MONGODB_DB: `try_${randomBytes(4).toString('hex')}` },
    ...{ MASTER_KEY: randomBytes(32).toString('base64'), ALLOW_PRIVATE_URLS: 'true', RATE_LIMIT_RPM: '0' },
    ...{ RUNS_PER_WORKER: '128', DRAIN_SECS: '0' },
    ...{ MCP_CONFIG: counter.config, TOOL_PERMISSIONS: '{"mcp__*":"allow"}' },
  })
  try {
    const row = await runBatch(cluster, vendor, counter)
    print(
      `| ${Object.keys(row).join(' | ')} |\n|${'---|'.repeat(Object.keys(row).length)}\n| ${Object.values(row).join(' | ')} |`,
    )
    return row.problems === ''
  } finally {
    clearInterval(answering)
    await cluster.close()
    await vendor.close()
    await model.close()
    await counter.close()
    await redis.stop()
    await mongo.stop()
  }
}

/** What the tool has answered where it was not called, or may not have been: the model calls it again then. */
const failedCalls = new Set<string>()

/** The items whose process died at the call: it may not have been made, and is not made again (D55.6b). */
const interrupted = new Set<string>()

/** One item in so many is answered wrongly the first time. */
async function openModel(): Promise<ModelServer> {
  const model = await startModelServer({ record: false })
  model.otherwise(({ body }) => {
    const text = JSON.stringify(body)
    const item = Number(/item (\d+)/.exec(text)?.[1])
    const results = (body['messages'] as { role: string; content: unknown }[]).filter(({ role }) => role === 'tool')
    const [result] = results.map(({ content }) => String(content))
    if (result?.includes('interrupted')) interrupted.add(String(item))
    if (result !== undefined && !/was counted|interrupted/.test(result)) failedCalls.add(result)
    if (values.tool && !/was counted|interrupted/.test(text))
      return { steps: [{ tool: TOOL, input: { item: String(item) } }], usage: USAGE_OF_CALL }
    const isWrong = item % CORRECTED === 0 && !text.includes('bad')
    return { steps: [{ text: isWrong ? '{"bad":1}' : GOOD }], usage: USAGE_OF_CALL }
  })
  return model
}

type Counter = { config: string; calls: Map<string, number>; close(): Promise<void> }

/** An MCP server whose tool counts its calls by item, and takes a while. */
async function startCounter(): Promise<Counter> {
  const calls = new Map<string, number>()
  const { fetch: answer } = createMcpHandler(() => {
    const mcp = new McpServer({ name: 'counter', version: '1.0.0' }, { capabilities: { tools: {} } })
    const inputSchema = z.object({ item: z.string() })
    mcp.registerTool('count', { description: 'Counts an item.', inputSchema }, async ({ item }) => {
      calls.set(item, (calls.get(item) ?? 0) + 1)
      await sleep(100)
      return { content: [{ type: 'text', text: 'the item was counted' }] }
    })
    return mcp
  })
  const server = await serveFetch(answer)
  const folder = await mkdtemp(join(tmpdir(), 'try-batch-'))
  const config = join(folder, 'mcp.json')
  await writeFile(config, JSON.stringify({ mcpServers: { counter: { type: 'http', url: server.url } } }))
  return {
    ...{ config, calls },
    async close() {
      await server.close()
      await rm(folder, { recursive: true })
    },
  }
}

function answerLate(vendor: VendorBatchServer): NodeJS.Timeout {
  vendor.isHeld = true
  const since = new Map<object, number>()
  let isBusy = false
  const answerDue = async () => {
    for (const kept of vendor.batches) {
      const at = since.get(kept) ?? performance.now()
      since.set(kept, at)
      const isDue = performance.now() - at > 1_000 * Number(values['answer-secs'])
      if (!kept.answers && isDue) await vendor.release(kept).catch(() => {}) // It is tried again.
    }
    isBusy = false
  }
  return setInterval(() => {
    if (isBusy) return
    isBusy = true
    void answerDue()
  }, LOOK_MS)
}

async function runBatch(cluster: Cluster, vendor: VendorBatchServer, { calls }: Counter) {
  const begun = performance.now()
  const prices = { 'm-1': PRICE }
  await cluster.ask('PUT', '/config/instances/pool', {
    type: 'openai',
    url: `${vendor.origin}/v1`,
    key: 'sk-1',
    prices,
  })
  const tools = values.tool ? [TOOL] : []
  const schemas = { input_schema: textSchema('text'), output_schema: textSchema('answer') }
  await cluster.ask('PUT', '/flows/answers', { ...schemas, tools })
  await cluster.ask('POST', '/flows/answers/publish')
  const items = Array.from({ length: COUNT }, (_, n) => ({ custom_id: `c-${n}`, input: { text: `item ${n}` } }))
  const deadline = values.live ? {} : { deadline_hours: Number(values.hours) }
  const request = { items, provider_instance: 'pool', model: 'm-1', ...deadline }
  const { batch_id: id } = JSON.parse(await cluster.ask('POST', '/flows/answers/batch', request)) as Batch
  const over = new AbortController()
  const killing = cluster.killUntil(over.signal, 1_000 * Number(values['kill-secs']))
  let batch: Batch
  do {
    await sleep(LOOK_MS)
    batch = JSON.parse(await cluster.ask('GET', `/batches/${id}`)) as Batch
  } while (batch.ended_at === null)
  over.abort()
  const kills = await killing
  const text = await cluster.ask('GET', `/batches/${id}/results`)
  const results = text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Result)
  const live =
    results.reduce((sum, each) => sum + each.input_tokens * PRICE.input + each.output_tokens * PRICE.output, 0) / 1e6
  const twice = [...vendor.submitted.values()].filter((count) => count > 1).length
  const called = [...calls.values()]
  const uncalled = COUNT - new Set([...calls.keys(), ...interrupted]).size
  const share = batch.usage.cost_usd / live
  const good = new Set(results.filter(({ status }) => status === 'ok').map(({ custom_id }) => custom_id))
  const late = results.filter(({ status }) => status === 'expired').length
  const kept = batch.ended_at !== null && batch.ended_at <= batch.deadline_at ? 1 - late / COUNT : 0
  const problems = [
    (good.size !== COUNT || results.length !== COUNT) && `${good.size} good of ${results.length} results`,
    twice > 0 && `${twice} calls in two batches`,
    called.some((count) => count > 1) && `${called.filter((count) => count > 1).length} tools called twice`,
    values.tool && uncalled > 0 && `${uncalled} tools neither called nor interrupted`,
    !values.live && share > 0.55 && 'too dear',
    kept < 0.999 && 'too late',
  ]
  return {
    items: COUNT,
    ok: good.size,
    results: results.length,
    'vendor batches': vendor.batches.length,
    'calls in batches': vendor.submitted.size,
    'in two': twice,
    'live calls': vendor.liveCalls,
    'tool calls': called.reduce((sum, count) => sum + count, 0),
    interrupted: interrupted.size,
    'cost of live': share.toFixed(3),
    'deadlines kept': `${(100 * kept).toFixed(2)} %`,
    'processes killed': 3 * kills,
    seconds: Math.round((performance.now() - begun) / 1_000),
    failed: [
      ...new Set(
        results.filter(({ status }) => status !== 'ok').map(({ status, error }) => `${status}: ${error?.message}`),
      ),
    ].join('; '),
    'failed tools': [...failedCalls].join('; '),
    problems: problems.filter(Boolean).join('; '),
  }
}

/** Two processes of each role. */
class Cluster {
  readonly #env: Env
  readonly #members: Record<Role, { child: Child; url: string }[]> = { gateway: [], worker: [], executor: [] }

  private constructor(env: Env) {
    this.#env = env
  }

  static async start(env: Env): Promise<Cluster> {
    const cluster = new Cluster(env)
    for (const role of ['worker', 'executor', 'gateway'] as const)
      await Promise.all([1, 2].map(() => cluster.#add(role)))
    return cluster
  }

  /** Kills the older one of each role so long after all were there. Resolves with how often. */
  async killUntil(signal: AbortSignal, everyMs: number): Promise<number> {
    const kill = async (role: Role) => {
      const oldest = this.#members[role].shift()
      await oldest?.child.kill('SIGKILL')
      // A process that is not there in time is started again, as a supervisor does.
      const mayPass = (cause: unknown) => {
        process.stderr.write(`${cause}\n`)
        return !signal.aborted
      }
      await retryUntil(() => this.#add(role), { pauses: LOOK_MS, mayPass })
    }
    for (let kills = 0; ; kills++) {
      await sleep(everyMs, undefined, { signal }).catch(() => {})
      if (signal.aborted) return kills
      await Promise.allSettled((['worker', 'executor', 'gateway'] as const).map(kill))
    }
  }

  /** Asks again while a gateway dies or something is unavailable: with one key, so that a start counts once. */
  async ask(method: string, path: string, body?: object): Promise<string> {
    const headers = { 'content-type': 'application/json', 'idempotency-key': randomBytes(8).toString('hex') }
    for (let tries = 1; ; tries++) {
      const [{ url } = { url: '' }] = this.#members.gateway.toReversed()
      const sent = { method, headers, ...(body && { body: JSON.stringify(body) }) }
      const answer = await fetch(url + path, sent)
        .then(async (each) => ({ status: each.status, text: await each.text() }))
        .catch(() => undefined)
      if (answer && answer.status < 400) return answer.text
      if (tries > 60 || (answer && answer.status < 500))
        throw new Error(`${method} ${path}: ${answer?.status} ${answer?.text}`)
      await sleep(LOOK_MS)
    }
  }

  async close(): Promise<void> {
    await Promise.all(
      Object.values(this.#members)
        .flat()
        .map(({ child }) => child.kill('SIGKILL')),
    )
  }

  async #add(role: Role): Promise<void> {
    const main = new URL(`../../services/${role}/main.ts`, import.meta.url).pathname
    const env = { HOST: '127.0.0.1', PORT: '0', OPS_PORT: '0', PATH: process.env['PATH'] ?? '', ...this.#env }
    const child = await spawnChild({ name: role, command: process.execPath, args: [main], env })
    const [line] = await child.line(/^\{.*"msg":"listening".*\}$/m, 90_000).catch(async (cause: unknown) => {
      await child.kill('SIGKILL')
      throw cause
    })
    this.#members[role].push({ child, url: (JSON.parse(line) as { url?: string }).url ?? '' })
  }
}

const print = (line: string) => process.stdout.write(`${line}\n`)

if (values.help) print(USAGE)
else process.exitCode = (await tryBatch()) ? 0 : 1
