import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Product, startStandalone } from '../../test/support/product.ts'
import { install, MODEL } from './install.ts'
import { startOllama } from './server.ts'

const USAGE = `usage: npm run try:ollama -- [--turns N] [--window TOKENS] [--folder PATH]

Builds a real Ollama, gives it a small model, and lets the product use it: a run, three at once, one that is cancelled, a flow with a
schema, and a session of N messages (30) at the server's default window. It fails when a message is lost without an event. It needs a Go
toolchain and takes minutes, most of them for the first build.
`

const say = (line: string) => console.log(line)

type Check = (product: Product) => Promise<string>

const run = async ({ run: start }: Product, prompt: string) => {
  const stream = await start({ prompt })
  await stream.all()
  return stream.frames
}

const codesOf = (frames: readonly { event: string; data: Record<string, unknown> }[]) =>
  frames.filter(({ event }) => event === 'warning').map(({ data }) => String(data['code']))

const CHECKS: Record<string, Check> = {
  async 'a run'(product) {
    const frames = await run(product, 'Say hello.')
    return `${frames.at(-1)?.event}, warnings ${codesOf(frames).join(' ') || 'none'}`
  },
  async 'three at once'(product) {
    const all = await Promise.all(['one', 'two', 'three'].map((word) => run(product, `Say ${word}.`)))
    return all.map((frames) => frames.at(-1)?.event).join(' ')
  },
  async 'a cancelled run'(product) {
    const stream = await product.run({ prompt: 'Count to a thousand.' })
    await product.call('DELETE', `/runs/${stream.runId}`)
    await stream.all()
    return String(stream.frames.at(-1)?.data['code'])
  },
  async 'a probe'(product) {
    const path = '/config/instances/ollama'
    await product.call('PUT', path, { type: 'ollama', url: process.env['TRY_OLLAMA_URL'] })
    const { body } = await product.call('POST', `${path}/probe`, { model: MODEL })
    return JSON.stringify((body as { capabilities?: unknown }).capabilities ?? body)
  },
  async 'a flow with a schema'(product) {
    const path = '/config/instances/ollama'
    await product.call('PUT', path, { type: 'ollama', url: process.env['TRY_OLLAMA_URL'] })
    const input = { text: 'The sun shines.', labels: ['good', 'bad'] }
    const { status, body } = await product.call('POST', '/flows/classify/run', {
      input,
      provider_instance: 'ollama',
      model: MODEL,
    })
    const { verdict, output } = body as { verdict?: string; output?: unknown }
    return `HTTP ${status}, ${verdict ?? JSON.stringify(body)}, ${JSON.stringify(output)}`
  },
}

/** A session of messages; each must be answered with a count that grows, or with a warning. */
async function checkSession(product: Product, turns: number): Promise<string> {
  const { body } = await product.call('POST', '/sessions', {})
  const id = (body as { session_id: string }).session_id
  let [last, lost] = [0, 0]
  const seen = new Set<string>()
  for (let turn = 1; turn <= turns; turn++) {
    const prompt = `Message ${turn}. ${`The word of this message is w${turn}. `.repeat(12)}Answer briefly.`
    const stream = await product.stream(`/sessions/${id}/messages`, { prompt })
    await stream.all()
    const codes = codesOf(stream.frames)
    const end = stream.frames.at(-1)
    const { input_tokens: input = 0 } = (stream.frames.findLast(({ event }) => event === 'turn_end')?.data ?? {}) as {
      input_tokens?: number
    }
    for (const code of codes) seen.add(code)
    if (end?.event !== 'done') say(`  message ${turn}: ${end?.event} ${JSON.stringify(end?.data)}`)
    if (end?.event === 'done' && input <= last && !codes.some((code) => code.startsWith('context_'))) lost++
    last = input
    say(`  message ${turn}: ${input} tokens${codes.length > 0 ? `, ${codes.join(' ')}` : ''}`)
  }
  if (lost > 0) throw new Error(`${lost} messages were cut without an event`)
  return `${turns} messages, nothing lost without an event; warnings seen: ${[...seen].join(' ') || 'none'}`
}

const { values } = parseArgs({
  options: {
    turns: { type: 'string', default: '30' },
    window: { type: 'string' },
    folder: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  },
})
if (values.help) process.stdout.write(USAGE)
else process.exitCode = await main(values.folder ?? join(tmpdir(), 'agent-engine-ollama'), Number(values.turns))

async function main(folder: string, turns: number): Promise<number> {
  const installed = await install(folder, say)
  await using ollama = await startOllama(installed, folder, values.window)
  process.env['TRY_OLLAMA_URL'] = ollama.url
  const product = await startStandalone({
    MODEL,
    MODEL_PROVIDER: 'ollama',
    MODEL_BASE_URL: ollama.url,
    MODEL_PRICES: '{}',
  })
  let failed = 0
  const checks = { ...CHECKS, 'a session': (each: Product) => checkSession(each, turns) }
  try {
    for (const [name, check] of Object.entries(checks)) {
      const startedAt = Date.now()
      const told = await check(product).catch((cause: unknown) => (failed++, `FAILED: ${String(cause)}`))
      say(`${name}: ${told} (${Math.round((Date.now() - startedAt) / 1_000)} s)`)
    }
  } finally {
    await product.close()
  }
  return failed === 0 ? 0 : 1
}
