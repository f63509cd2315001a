import { isJsonObject, parseJson } from '../../../kernel/json.ts'
import type { Send, SendRequest } from './transport.ts'

type Server = { chatUrl: string; headers: Record<string, string>; send: Send }

/** How long an answer counts: the server may load a model again with another window. */
const KEEP_MS = 60_000
/** A server that takes longer is not waited for. */
const TIMEOUT_MS = 2_000
const MAX_MODELS = 64
const MAX_BYTES = 1024 * 1024

/** Asks an Ollama server for the windows of its models, in tokens; `undefined` for one that it does not tell. Never rejects. */
export function createOllamaWindows({ chatUrl, headers, send }: Server) {
  const root = chatUrl.replace(/\/(?:api\/chat|(?:v1\/)?chat\/completions).*$/, '')
  const known = new Map<string, { tokens: number | undefined; until: number }>()
  const request: Ask = async (path, fields) => {
    const { status, body } = await send(`${root}${path}`, { ...fields, headers })
    return status === 200 ? parseJson(await readText(body)) : undefined
  }
  return {
    /** The window that was told last. */
    lastOf: (model: string): number | undefined => known.get(model)?.tokens,
    async ask(model: string, caller: AbortSignal): Promise<number | undefined> {
      const last = known.get(model)
      if (last && performance.now() < last.until) return last.tokens
      const signal = AbortSignal.any([caller, AbortSignal.timeout(TIMEOUT_MS)])
      const tokens = await askBoth(model, signal, request).catch(() => undefined)
      if (known.size >= MAX_MODELS) known.clear()
      known.set(model, { tokens, until: performance.now() + KEEP_MS })
      return tokens
    },
  }
}

type Ask = (path: string, request: Pick<SendRequest, 'method' | 'body' | 'signal'>) => Promise<unknown>

async function askBoth(model: string, signal: AbortSignal, ask: Ask): Promise<number | undefined> {
  const loaded = loadedWindow(await ask('/api/ps', { method: 'GET', body: '', signal }), model)
  if (loaded !== undefined) return loaded
  return configuredWindow(await ask('/api/show', { method: 'POST', body: JSON.stringify({ model }), signal }))
}

/** The window of a loaded model. A name without a tag means the tag `latest`. */
function loadedWindow(answer: unknown, model: string): number | undefined {
  const { models } = (isJsonObject(answer) ? answer : {}) as { models?: unknown }
  const names = [model, `${model}:latest`]
  const loaded = (Array.isArray(models) ? models : []).filter(isJsonObject)
  return toTokens(loaded.find(({ name }) => names.includes(String(name)))?.['context_length'])
}

/** `num_ctx` in the settings of a model; without it the server's own default counts, which it does not tell. */
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
