import { parseJson } from '../../../shared/kernel/json.ts'
import type { InstanceType } from '../../../shared/tenancy/tenant-config/config.ts'
import { type ModelServer, startModelServer } from '../../support/model-server/model-server.ts'
import { call, prepare, transcriptionForm } from '../api.ts'

/** How an attempt ended: a status, or the terminal event of a run, with the message. */
export type Attempt = { door: string; url: string; outcome: string; message: string; ms: number }

export type Target = { name: string; type: InstanceType; url: string }

export const TYPES: readonly InstanceType[] = ['openai-compatible', 'anthropic', 'google', 'openai', 'ollama']

/** All ways in which a tenant makes a server call the address of an instance. */
export async function tryInstance(base: string, target: Target): Promise<Attempt[]> {
  const path = `/config/instances/${target.name}`
  const attempts = [
    await attempt('discover', target.url, () => call(base, { method: 'POST', path: `${path}/discover` })),
    await attempt('probe', target.url, () =>
      call(base, { method: 'POST', path: `${path}/probe`, body: { model: 'm' } }),
    ),
    await attempt('run', target.url, () => runOn(base, target)),
  ]
  if (!target.type.startsWith('openai')) return attempts
  const form = transcriptionForm(target.name)
  const transcription = () => call(base, { method: 'POST', path: '/audio/transcriptions', body: form })
  return [...attempts, await attempt('transcription', target.url, transcription)]
}

export const tryPut = (base: string, target: Target): Promise<Attempt> =>
  attempt('PUT instance', target.url, () =>
    call(base, { method: 'PUT', path: `/config/instances/put`, body: { type: target.type, url: target.url } }),
  )

async function runOn(base: string, { name }: Target) {
  const routing = { main: { instance: name, model: 'm' } }
  await prepare(base, { method: 'PUT', path: '/config/engine', body: { routing } })
  return call(base, { method: 'POST', path: '/agent/run', body: { prompt: 'hello' } })
}

async function attempt(
  door: string,
  url: string,
  act: () => Promise<{ status: number; text: string }>,
): Promise<Attempt> {
  const from = performance.now()
  const { status, text } = await act()
  const ms = performance.now() - from
  const last = [...text.matchAll(/^event: (\w+)\ndata: (.*)$/gm)].at(-1)
  if (last) return { door, url, outcome: last[1] ?? '', message: last[2] ?? '', ms }
  const { error } = (parseJson(text) ?? {}) as { error?: { message?: string; code?: string } }
  return { door, url, outcome: String(status), message: `${error?.code ?? ''} ${error?.message ?? text}`, ms }
}

const CALLS_PER_TURN = 20

type ToolResult = { output: string; is_error: boolean }

/** The results of the tool calls of a stream by the address that was fetched. They come in any order. */
function resultsByUrl(stream: string): Map<string, ToolResult> {
  const eventsOf = <T>(name: string) =>
    [...stream.matchAll(new RegExp(`^event: ${name}\\ndata: (.*)$`, 'gm'))].map(
      ([, data = '{}']) => JSON.parse(data) as T & { id: string },
    )
  const urls = new Map(eventsOf<{ input: { url: string } }>('tool_use').map(({ id, input }) => [id, input.url]))
  return new Map(eventsOf<ToolResult>('tool_result').map((result) => [urls.get(result.id) ?? '', result]))
}

/** A model of the server's own that makes runs fetch addresses. */
export class FetchingModel implements AsyncDisposable {
  readonly #model: ModelServer

  private constructor(model: ModelServer) {
    this.#model = model
  }

  static async start(): Promise<FetchingModel> {
    return new FetchingModel(await startModelServer())
  }

  /** For a process whose runs use this model and need no permission. */
  get env(): Record<string, string> {
    return {
      MODEL: 'test-model',
      MODEL_PROVIDER: 'openai-compatible',
      MODEL_BASE_URL: this.#model.url,
      TOOL_PERMISSIONS: '{"WebFetch":"allow"}',
    }
  }

  /** Lets runs of `base` fetch every address, as long as the tenant has no main route. */
  async fetchAll(base: string, urls: readonly string[]): Promise<Attempt[]> {
    const attempts: Attempt[] = []
    for (let at = 0; at < urls.length; at += CALLS_PER_TURN) {
      const some = urls.slice(at, at + CALLS_PER_TURN)
      this.#model.answer(
        some.map((url) => ({ tool: 'WebFetch', input: { url } })),
        'done',
      )
      const from = performance.now()
      const { text } = await call(base, { method: 'POST', path: '/agent/run', body: { prompt: 'fetch' } })
      const ms = performance.now() - from
      const results = resultsByUrl(text)
      for (const url of some) {
        const { is_error: isError, output } = results.get(url) ?? {
          is_error: false,
          output: `no result: ${text.slice(-300)}`,
        }
        attempts.push({ door: 'WebFetch', url, outcome: isError ? 'tool error' : 'tool answer', message: output, ms })
      }
    }
    return attempts
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#model.close()
  }
}
