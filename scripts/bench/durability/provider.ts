import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** What each answer consists of: so many tokens, all at once or one after the other. */
export type Pace = { tokens: number; everyMs: number }

export type Provider = AsyncDisposable & { env: Readonly<Record<string, string>> }

const MODEL = 'bench'

/** Starts a provider of chat completions over HTTP. `env` makes it the default one of a process. */
export async function startProvider(pace: Pace): Promise<Provider> {
  const server = createServer((req, res) => void req.resume().once('end', () => void answer(res, pace)))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    env: {
      MODEL,
      MODEL_PROVIDER: 'openai-compatible',
      MODEL_BASE_URL: `http://127.0.0.1:${port}/v1`,
      MODEL_PRICES: JSON.stringify({ [MODEL]: { input: 1, output: 1 } }),
      ALLOW_PRIVATE_URLS: 'true',
    },
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}

async function answer(res: ServerResponse, { tokens, everyMs }: Pace): Promise<void> {
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  if (everyMs === 0) res.write(TOKEN.repeat(tokens))
  else
    for (let i = 0; i < tokens && !res.destroyed; i++) {
      res.write(TOKEN)
      await sleep(everyMs)
    }
  const usage = { prompt_tokens: 100, completion_tokens: tokens, total_tokens: 100 + tokens }
  res.end(`${chunk({}, 'stop', usage)}data: [DONE]\n\n`)
}

const chunk = (delta: object, finish: string | null, usage: object | null): string =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 0, model: MODEL, choices: [{ index: 0, delta, finish_reason: finish }], usage })}\n\n`

const TOKEN = chunk({ content: 'word ' }, null, null)
