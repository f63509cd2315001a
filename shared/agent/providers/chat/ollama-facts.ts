import { isJsonObject, parseJson } from '../../../kernel/json.ts'
import type { Send } from '../port.ts'

type Server = { chatUrl: string; headers: Record<string, string>; send: Send }

/** How long an answer is valid: the server may load a model again with another window. */
const KEEP_MS = 60_000
/** A server that takes longer is not waited for. */
const TIMEOUT_MS = 2_000
const MAX_MODELS = 64
const MAX_BYTES = 1024 * 1024

/** A model that is not loaded is loaded with the server's own window, as the first turn would do. */
const LOAD_TIMEOUT_MS = 120_000

type Known = { tokens: number | undefined; until: number }

/** Asks an Ollama server for facts about its models; a fact that it does not report is `undefined`. Never rejects. */
export function createOllamaFacts({ chatUrl, headers, send }: Server) {
  const root = chatUrl.replace(/\/(?:api\/chat|(?:v1\/)?chat\/completions).*$/, '')
  const known = new Map<string, Known>()
  const within = (ms: number, caller: AbortSignal) => AbortSignal.any([caller, AbortSignal.timeout(ms)])
  const ask: Ask = async (path, fields, caller, ms = TIMEOUT_MS) => {
    const method = fields === undefined ? 'GET' : 'POST'
    const body = fields === undefined ? '' : JSON.stringify(fields)
    const { status, body: bytes } = await send(`${root}${path}`, { method, body, signal: within(ms, caller), headers })
    return status === 200 ? parseJson(await readText(bytes)) : undefined
  }
  return {
    /** The window that Ollama has reported last. */
    lastWindowOf: (model: string): number | undefined => known.get(model)?.tokens,
    /** The window of a model in tokens. */
    async askWindow(model: string, caller: AbortSignal): Promise<number | undefined> {
      const last = known.get(model)
      if (last && performance.now() < last.until) return last.tokens
      const tokens = await windowOf(model, ask, caller).catch(() => undefined)
      if (known.size >= MAX_MODELS) known.clear()
      known.set(model, { tokens, until: performance.now() + KEEP_MS })
      return tokens
    },
    async askCapabilities(model: string, caller: AbortSignal): Promise<readonly string[] | undefined> {
      const answer = await ask('/api/show', { model }, caller).catch(() => undefined)
      const { capabilities } = isJsonObject(answer) ? answer : {}
      return Array.isArray(capabilities) ? capabilities.filter((each) => typeof each === 'string') : undefined
    },
  }
}

type Ask = (path: string, fields: object | undefined, caller: AbortSignal, ms?: number) => Promise<unknown>

/** The window with which a model is loaded, or its own setting; otherwise the model is loaded, and gets the server's default. */
async function windowOf(model: string, ask: Ask, caller: AbortSignal): Promise<number | undefined> {
  const loaded = loadedWindow(await ask('/api/ps', undefined, caller), model)
  if (loaded !== undefined) return loaded
  const shown = await ask('/api/show', { model }, caller)
  const configured = configuredWindow(shown)
  if (configured !== undefined || shown === undefined) return configured
  await ask('/api/generate', { model, stream: false }, caller, LOAD_TIMEOUT_MS)
  return loadedWindow(await ask('/api/ps', undefined, caller), model)
}

/** The window of a loaded model. A name without a tag means the tag `latest`. */
function loadedWindow(answer: unknown, model: string): number | undefined {
  const { models } = (isJsonObject(answer) ? answer : {}) as { models?: unknown }
  const names = [model, `${model}:latest`]
  const loaded = (Array.isArray(models) ? models : []).filter(isJsonObject)
  return toTokens(loaded.find(({ name }) => names.includes(String(name)))?.['context_length'])
}

/** `num_ctx` in the settings of a model. */
function configuredWindow(answer: unknown): number | undefined {
  const { parameters } = (isJsonObject(answer) ? answer : {}) as { parameters?: unknown }
  const [, numCtx] = /^num_ctx\s+(\d+)/m.exec(typeof parameters === 'string' ? parameters : '') ?? []
  return toTokens(Number(numCtx))
}

const toTokens = (value: unknown) => (typeof value === 'number' && value >= 256 ? value : undefined)

async function readText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > MAX_BYTES) return ''
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
