import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Child } from '../support/child.ts'
import { type ModelServer, startModelServer } from '../support/model-server/model-server.ts'
import { Shell } from './shell.ts'

const MAIN = new URL('../../services/standalone/main.ts', import.meta.url).pathname

/** The standalone form with a MASTER_KEY, and a provider that knows `my-model` and transcribes: what the documents suppose. */
export class Stage {
  readonly dir: string
  readonly #server: Child
  readonly #url: string
  readonly #model: ModelServer
  readonly #provider: Server

  private constructor(parts: { dir: string; server: Child; url: string; model: ModelServer; provider: Server }) {
    this.dir = parts.dir
    this.#server = parts.server
    this.#url = parts.url
    this.#model = parts.model
    this.#provider = parts.provider
  }

  static async open(): Promise<Stage> {
    const dir = await mkdtemp(join(tmpdir(), 'agent-engine-documents-'))
    await writeFile(join(dir, 'recording.wav'), 'RIFF')
    const model = await startModelServer({ record: false })
    model.otherwise(() => '{"total":120}')
    model.models = ['my-model']
    const provider = providerBefore(Number(new URL(model.url).port))
    await once(provider, 'listening')
    const env = { DATA_DIR: join(dir, 'data'), PORT: '0', OPS_PORT: '0', RATE_LIMIT_RPM: '0' }
    const server = new Child(process.execPath, [MAIN], { ...env, MASTER_KEY: randomBytes(32).toString('base64') })
    const { url } = JSON.parse(await server.line(/"listening"/)) as { url: string }
    return new Stage({ dir, server, url, model, provider })
  }

  /** A shell in a folder of its own that has `recording.wav`. `path` is put before PATH. */
  shell(path = ''): Promise<Shell> {
    return Shell.start({ cwd: this.dir, env: { PATH: `${path}:${process.env['PATH']}`, HOME: this.dir } })
  }

  /** Replaces the addresses of a document by those of this stage. */
  localized(text: string): string {
    const { port } = this.#provider.address() as AddressInfo
    return text
      .replaceAll('http://127.0.0.1:8080/v1', this.#url)
      .replaceAll('https://models.example.com/v1', `http://127.0.0.1:${port}/v1`)
      .replaceAll('https://ci.example.com', `http://127.0.0.1:${port}`)
  }

  async close(): Promise<void> {
    await this.#server.end()
    this.#provider.close()
    this.#provider.closeAllConnections()
    await this.#model.close()
    await rm(this.dir, { recursive: true, force: true })
  }
}

/** Answers transcriptions and webhooks itself, and passes everything else on to the model server. */
function providerBefore(port: number): Server {
  return createServer((req, res) => {
    if (req.url === '/v1/audio/transcriptions') {
      req.resume().once('end', () => res.writeHead(200, { 'content-type': 'application/json' }).end('{"text":"hello"}'))
      return
    }
    if (req.url === '/hooks') {
      req.resume().once('end', () => res.writeHead(204).end())
      return
    }
    const { url: path, method, headers } = req
    const upstream = request({ port, path, method, headers }, (answer) =>
      answer.pipe(res.writeHead(answer.statusCode ?? 502, answer.headers)),
    )
    upstream.on('error', () => res.destroy())
    req.pipe(upstream)
  }).listen(0, '127.0.0.1')
}
