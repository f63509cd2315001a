import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStandalone } from '../../services/standalone/standalone.mts'
import { loadConfig } from '../../shared/config.ts'
import { createLog } from '../../shared/log.ts'
import { EventStream } from './event-stream.ts'
import { type ModelServer, startModelServer } from './model-server/model-server.ts'

export type Reply = { status: number; headers: Headers; body: unknown }

/** The product as a client sees it, and the model it talks to. */
export type Product = {
  /** With the base path, without a slash at the end. */
  url: string
  model: ModelServer
  dataDir: string
  log: readonly string[]
  /** Calls the API; a body is sent as JSON. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>
  /** Opens a stream: POST with a body, GET without. */
  stream(path: string, body?: unknown, headers?: Record<string, string>): Promise<EventStream>
  run(body: unknown): Promise<EventStream>
  close(): Promise<void>
}

/** Starts the standalone form in this process, with a model server of its own behind the openai-compatible wire format. */
export async function startProduct(env: Record<string, string> = {}): Promise<Product> {
  const model = await startModelServer()
  const dataDir = await mkdtemp(join(tmpdir(), 'agent-engine-test-'))
  const config = loadConfig(
    {
      PORT: '0',
      OPS_PORT: '0',
      DATA_DIR: dataDir,
      RATE_LIMIT_RPM: '0',
      DRAIN_SECS: '0',
      MODEL: 'test-model',
      MODEL_PROVIDER: 'openai-compatible',
      MODEL_BASE_URL: model.url,
      MODEL_PRICES: '{"test-model":{"input":1,"output":10,"cache_read":0.1}}',
      ...env,
    },
    'standalone',
  )
  const lines: string[] = []
  const log = createLog({ level: config.logLevel, secrets: config.secrets, write: (line) => lines.push(line) })
  const standalone = await openStandalone(config, log)
  const { url } = standalone
  return {
    url,
    model,
    dataDir,
    log: lines,
    call: (method, path, body, headers) => call(url + path, method, body, headers),
    stream: (path, body, headers) =>
      EventStream.open(url + path, initOf(body === undefined ? 'GET' : 'POST', body, headers)),
    run: (body) => EventStream.open(`${url}/agent/run`, initOf('POST', body)),
    async close() {
      for (const { close } of standalone.closers) await close()
      await model.close()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

async function call(url: string, method: string, body?: unknown, headers?: Record<string, string>): Promise<Reply> {
  const response = await fetch(url, initOf(method, body, headers))
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.includes('application/json')
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text }
}

function initOf(method: string, body: unknown, headers: Record<string, string> = {}): RequestInit {
  if (body === undefined) return { method, headers }
  return { method, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) }
}
