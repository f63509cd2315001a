import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import { createProvider } from '../../services/wiring/models/create-provider.ts'
import { callModel } from '../../shared/agent/providers/failures/failover.ts'
import type { ModelProvider, Priority } from '../../shared/agent/providers/port.ts'
import { oneByOne } from '../../shared/kernel/async/batch.ts'
import { NO_METRICS } from '../../shared/kernel/metrics.ts'
import { parseTenant, type TenantId } from '../../shared/kernel/tenant.ts'
import { openRedisLink } from '../../shared/platform/redis/link.ts'
import { createMeter } from '../../shared/tenancy/limits/meter.ts'
import { ModelGate } from '../../shared/tenancy/room/gate.ts'
import type { Rooms } from '../../shared/tenancy/room/port.ts'
import { createRedisRooms } from '../../shared/tenancy/room/redis-rooms.ts'
import { FREE_TURN, MemoryRooms } from '../../shared/tenancy/room/rooms.ts'

const USAGE = `usage: npm run bench:fair -- [--redis URL] [--window] [--turns] [--secs 60]

Shares a provider that allows a million tokens a minute among 200 tenants with 50 customers each, one of them hostile, with batches that saturate it: the
calls with turns, and the same without them unless --turns is given. With --redis four gates share the room over that Redis, else there is one. With
--window the provider counts by the minute, else all the time. --secs is how long each of the two is measured, behind 30 seconds to warm up.
`

const { values: options } = parseArgs({
  options: {
    secs: { type: 'string', default: '60' },
    redis: { type: 'string' },
    window: { type: 'boolean', default: false },
    turns: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const LIMIT = 1_000_000
const TENANTS = 200
const CUSTOMERS = 50
const GATES = options.redis === undefined ? 1 : 4
/** Calls that each tenant has at work or waiting; the hostile one has many times as many. */
const EACH = 4
const HOSTILE = 1_000
const INTERACTIVE_PER_SEC = 10
const WARM_MS = 30_000
const MS = 1_000 * Number(options.secs)

/** A token bucket as OpenAI and Anthropic have them, or with `--window` a count that begins anew each minute. */
class Quota {
  left = LIMIT
  at = performance.now()
  windowEnd = performance.now() + 60_000

  take(tokens: number): boolean {
    const now = performance.now()
    if (options.window) {
      while (now >= this.windowEnd) [this.left, this.windowEnd] = [LIMIT, this.windowEnd + 60_000]
    } else this.left = Math.min(LIMIT, this.left + ((now - this.at) * LIMIT) / 60_000)
    this.at = now
    if (this.left < tokens) return false
    this.left -= tokens
    return true
  }

  headers(): Record<string, string> {
    const reset = options.window ? this.windowEnd - this.at : ((LIMIT - this.left) * 60_000) / LIMIT
    return {
      'x-ratelimit-limit-tokens': String(LIMIT),
      'x-ratelimit-remaining-tokens': String(Math.floor(this.left)),
      'x-ratelimit-reset-tokens': `${(reset / 1_000).toFixed(3)}s`,
    }
  }

  retryAfter(tokens: number): string {
    const ms = options.window ? this.windowEnd - this.at : ((tokens - this.left) * 60_000) / LIMIT
    return String(Math.max(1, Math.ceil(ms / 1_000)))
  }
}

type Tally = { calls: number; refused: number; tokens: number }

/** Runs in a thread of its own, so that the load of the callers does not slow it down. */
function serve(): void {
  const quota = new Quota()
  const tally: Tally = { calls: 0, refused: 0, tokens: 0 }
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => answer(res, Buffer.concat(chunks)))
  })
  const answer = (res: ServerResponse, body: Buffer) => {
    const input = Math.ceil(body.length / 4)
    const output = 20 + Math.floor(Math.random() * 80)
    const tokens = input + output
    tally.calls++
    if (!quota.take(tokens)) {
      tally.refused++
      const retry = { 'retry-after': quota.retryAfter(tokens), 'content-type': 'application/json' }
      res.writeHead(429, { ...quota.headers(), ...retry })
      return void res.end('{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}')
    }
    tally.tokens += tokens
    res.writeHead(200, { ...quota.headers(), 'content-type': 'text/event-stream' })
    const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: tokens }
    const chunk = (delta: object, rest: object = {}) =>
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta, ...rest }] })}\n\n`
    setTimeout(() => {
      res.write(chunk({ role: 'assistant', content: 'x'.repeat(4 * output) }))
      res.write(chunk({}, { finish_reason: 'stop' }))
      res.end(`data: ${JSON.stringify({ id: 'c', choices: [], usage })}\n\ndata: [DONE]\n\n`)
    }, 200)
  }
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
    parentPort?.postMessage((server.address() as AddressInfo).port)
  })
  parentPort?.on('message', () => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
    parentPort?.postMessage({ ...tally })
    Object.assign(tally, { calls: 0, refused: 0, tokens: 0 })
  })
}

/** `count` answers what the provider has counted since it was asked last. */
async function openProvider() {
  const worker = new Worker(new URL(import.meta.url), { argv: process.argv.slice(2) })
  const said = <T>() => new Promise<T>((resolve) => worker.once('message', resolve))
  const url = `http://127.0.0.1:${await said<number>()}/v1`
  const count = () => {
    const answer = said<Tally>()
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
    worker.postMessage('count')
    return answer
  }
  return { url, count, close: () => worker.terminate() }
}

type Figures = {
  tally: Tally
  tokensOf: Map<TenantId, number>
  customersOf: Map<string, number>
  waits: number[]
  failed: number
  asked: number
}

async function run(hasGate: boolean): Promise<Figures> {
  const figures: Figures = {
    ...{ tally: { calls: 0, refused: 0, tokens: 0 }, tokensOf: new Map(), customersOf: new Map() },
    ...{ waits: [], failed: 0, asked: 0 },
  }
  const upstream = await openProvider()
  const plain = await createProvider({ type: 'openai-compatible', baseUrl: upstream.url, apiKey: 'k' })
  const links = await Promise.all(
    Array.from({ length: GATES }, () => (options.redis ? openRedisLink(options.redis) : Promise.resolve(undefined))),
  )
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const gates = links.map(
    (link) =>
      new ModelGate({
        rooms: counted(link ? createRedisRooms(link.run) : new MemoryRooms(), figures),
        metrics: NO_METRICS,
        log,
      }),
  )
  const providers = gates.map((gate) => {
    const reservations = { reserve: async () => ({ settle() {} }) }
    return createMeter({ reservations, gate: hasGate ? gate : { enter: () => FREE_TURN }, priceOf: () => 0 })
  })
  const stop = new AbortController()
  const model = `m-${process.pid}-${Date.now()}`
  let isWarm = false
  const call = async (tenant: TenantId, priority: Priority) => {
    const customer = `c${Math.floor(Math.random() * CUSTOMERS)}`
    const meter = providers[Math.floor(Math.random() * providers.length)]
    const provider = meter?.provider(tenant, plain) as ModelProvider
    const prompt = 'y'.repeat(400 + Math.floor(Math.random() * 800))
    const request = { messages: [{ role: 'user' as const, text: prompt }], tools: [], stopSequences: [] }
    const route = { provider, model, caller: { priority, customer } }
    const startedAt = performance.now()
    for await (const part of oneByOne(
      callModel({ primary: route, fallback: undefined, request, signal: stop.signal }),
    )) {
      if (part.type === 'text_delta' && priority === 'interactive' && isWarm)
        figures.waits.push(performance.now() - startedAt)
      if (part.type === 'failure') {
        if (isWarm) figures.failed++
        await sleep(100)
      }
      if (part.type !== 'finish' || !isWarm) continue
      const tokens = (part.usage?.input ?? 0) + (part.usage?.output ?? 0)
      figures.tokensOf.set(tenant, (figures.tokensOf.get(tenant) ?? 0) + tokens)
      if (tenant === HOST) figures.customersOf.set(customer, (figures.customersOf.get(customer) ?? 0) + tokens)
    }
  }
  const keep = async (tenant: TenantId) => {
    while (!stop.signal.aborted) await call(tenant, 'batch')
  }
  for (const tenant of NAMES) for (let at = 0; at < (tenant === HOST ? HOSTILE : EACH); at++) void keep(tenant)
  const interactive = setInterval(
    () => void call(NAMES[1 + Math.floor(Math.random() * (TENANTS - 1))] ?? HOST, 'interactive'),
    1_000 / INTERACTIVE_PER_SEC,
  )
  await sleep(WARM_MS)
  await upstream.count()
  figures.asked = 0
  isWarm = true
  await sleep(MS)
  isWarm = false
  clearInterval(interactive)
  const result = { ...figures, tally: await upstream.count() }
  stop.abort('cancelled')
  for (const gate of gates) gate.close()
  await upstream.close()
  await sleep(500)
  for (const link of links) await link?.close()
  return result
}

const counted = (rooms: Rooms, figures: Figures): Rooms => ({
  ask: (...args) => (figures.asked++, rooms.ask(...args)),
  look: (scope) => rooms.look(scope),
})

/** Jain's index: 1 where all have the same. */
function jain(values: readonly number[]): number {
  const sum = values.reduce((all, each) => all + each, 0)
  const squares = values.reduce((all, each) => all + each * each, 0)
  return squares === 0 ? 0 : sum ** 2 / (values.length * squares)
}

function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN
}

function show(title: string, { tally, tokensOf, customersOf, waits, failed, asked }: Figures): void {
  const equals = NAMES.slice(1).map((tenant) => tokensOf.get(tenant) ?? 0)
  const mean = equals.reduce((sum, each) => sum + each, 0) / equals.length
  process.stdout.write(
    [
      title,
      `  upstream 429         ${((100 * tally.refused) / Math.max(1, tally.calls)).toFixed(3)} % of ${tally.calls} calls`,
      `  use of the quota     ${((100 * tally.tokens) / (LIMIT * (MS / 60_000))).toFixed(1)} %`,
      `  Jain, equal tenants  ${jain(equals).toFixed(3)}`,
      `  hostile : equal      ${((tokensOf.get(HOST) ?? 0) / Math.max(1, mean)).toFixed(2)}`,
      `  Jain, its customers  ${jain([...customersOf.values()]).toFixed(3)}`,
      `  interactive wait     p50 ${quantile(waits, 0.5).toFixed(0)} ms, p99 ${quantile(waits, 0.99).toFixed(0)} ms to the first text (200 ms of it the model's), of ${waits.length}`,
      `  failed calls         ${failed}`,
      `  asked of the rooms   ${(asked / Math.max(1, tally.calls)).toFixed(2)} a call`,
      '',
    ].join('\n'),
  )
}

const tenantId = (name: string) => parseTenant(name) as TenantId
const NAMES = Array.from({ length: TENANTS }, (_, at) => tenantId(`t${at}`))
const HOST = tenantId('t0')

if (options.help) process.stdout.write(USAGE)
else if (isMainThread) {
  show('with turns', await run(true))
  if (!options.turns) show('without', await run(false))
  process.exit(0)
} else serve()
