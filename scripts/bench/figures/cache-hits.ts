import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Bench } from '../bench.ts'
import { Client } from '../client.ts'
import { GATEWAY } from '../dialect.ts'
import type { Figure, Measured } from '../figure.ts'
import { MASTER_KEY } from '../master-key.ts'

const MINUTE_MS = 60_000
/** OpenAI sends so many requests of one key in a minute to one machine, and those above it to others. */
const PER_MACHINE = 15
/** A machine has the beginning of its first request in its cache after so long. */
const PREFILL_MS = 500
/** The least that OpenAI caches are 1,024 tokens. */
const SYSTEM = 'Decide whether the text is about weather, as the following rules say. '.repeat(100)
const ANSWER = { type: 'object', properties: { answer: { enum: ['yes', 'no'] } }, required: ['answer'] }
const TEXT = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }

/** The part of the runs of one flow, each with an input of its own, whose beginning is in the provider's cache. */
export const cacheHits: Figure = {
  name: 'cache-hits',
  title: 'runs of one flow, 1,000 a minute, that find their beginning in the cache of the provider',
  goal: { atLeast: 0.85 },
  unit: 'x',
  measure,
}

type Machine = { warmAt: number; requests: number[] }

/** The machines of a vendor, by keys. */
class PrefixCaches {
  readonly #machines = new Map<string, Machine[]>()
  hits = 0

  get size(): number {
    return [...this.#machines.values()].flat().length
  }

  note(key: string, now: number): void {
    const machines = this.#machines.get(key) ?? []
    this.#machines.set(key, machines)
    for (const each of machines) each.requests = each.requests.filter((at) => now - at < MINUTE_MS)
    const found = machines.find(({ requests }) => requests.length < PER_MACHINE)
    const machine = found ?? { warmAt: now + PREFILL_MS, requests: [] }
    if (!found) machines.push(machine)
    machine.requests.push(now)
    if (now >= machine.warmAt) this.hits++
  }
}

type Caches = Record<'shared' | 'ofInput', PrefixCaches>

async function measure(bench: Bench): Promise<Measured> {
  const count = bench.pick(1_000, 200)
  const caches: Caches = { shared: new PrefixCaches(), ofInput: new PrefixCaches() }
  const provider = createServer((req, res) => {
    let text = ''
    req.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    req.once('end', () => answer(res, text, caches))
  }).listen(0, '127.0.0.1')
  await once(provider, 'listening')
  await using ours = await bench.startOurs('data-cache', { MASTER_KEY, ALLOW_PRIVATE_URLS: 'true' })
  using client = new Client({ port: ours.port, dialect: GATEWAY }, bench.signal)
  const put = (path: string, body: object, method = 'PUT') =>
    configure(`http://127.0.0.1:${ours.port}/v1${path}`, { method, body })
  await put('/config/instances/vendor', {
    type: 'openai',
    key: 'sk-bench',
    url: `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`,
  })
  await put('/flows/cached', {
    model: 'bench',
    input_schema: TEXT,
    output_schema: ANSWER,
    system_prompt_template: SYSTEM,
  })
  await put('/flows/cached/publish', {}, 'POST')
  const run = (i: number) =>
    client.text('/v1/flows/cached/run', { input: { text: `Text ${i}.` }, provider_instance: 'vendor' })
  const minute = async () => {
    const runs: Promise<string>[] = []
    for (let i = 0; i < count; i++) {
      runs.push(run(i))
      await sleep(MINUTE_MS / 1_000, undefined, { signal: bench.signal })
    }
    const hits = [caches.shared.hits, caches.ofInput.hits]
    await Promise.all(runs)
    return hits
  }
  const [first = 0, ofInput = 0] = await minute()
  const machines = caches.shared.size
  const [both = 0] = await minute()
  provider.closeAllConnections()
  provider.close()
  const rate = (hits: number) => `${((100 * hits) / count).toFixed(1)} %`
  return {
    value: first / count,
    detail: `${rate(first)} in the first minute, at ${machines} machines, ${rate(both - first)} in the second; ${rate(ofInput)} with a key for each input`,
  }
}

async function configure(url: string, { method, body }: { method: string; body: object }): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const res = await fetch(url, { method, headers, body: JSON.stringify(body) })
  if (!res.ok) throw new Error(`${url} answered ${res.status}: ${(await res.text()).slice(0, 200)}`)
}

function answer(res: ServerResponse, text: string, caches: Caches): void {
  const now = performance.now()
  const { prompt_cache_key: key, messages } = JSON.parse(text) as { prompt_cache_key: string; messages: unknown[] }
  caches.shared.note(key, now)
  caches.ofInput.note(createHash('sha256').update(JSON.stringify(messages)).digest('hex'), now)
  const chunk = (delta: object, finish: string | null) =>
    `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 0, model: 'bench', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
  const said = chunk({ role: 'assistant', content: '{"answer":"yes"}' }, null)
  res.writeHead(200, { 'content-type': 'text/event-stream' }).end(`${said}${chunk({}, 'stop')}data: [DONE]\n\n`)
}
