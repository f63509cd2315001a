import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Entry } from '../../history.ts'
import { type Proc, Procs } from '../../procs.ts'
import { StreamClient } from '../../stream-client.ts'
import type { RunOpener } from './customer-load.ts'

/** The standalone form as a process that can be killed and started again with its stored data. */
export class Standalone implements RunOpener, AsyncDisposable {
  readonly history: Entry[] = []
  url = ''
  #opsUrl = ''
  readonly dataDir = mkdtempSync(join(tmpdir(), 'agent-engine-chaos-'))
  readonly #procs = new Procs((entry) => this.history.push(entry))
  #proc: Proc | undefined
  readonly #settings: Readonly<Record<string, string>>
  #starts = 0

  /** `settings` replace the defaults, which choose the demo model. */
  constructor(settings: Readonly<Record<string, string>> = {}) {
    this.#settings = settings
    process.once('exit', this.#clean)
  }

  async start(): Promise<void> {
    this.#proc = await this.#procs.start({
      name: `standalone ${++this.#starts}`,
      args: ['services/standalone/main.ts'],
      env: this.#env(),
      ready: /^\{.*"msg":"listening".*\}$/m,
    })
    const { url, ops_url } = JSON.parse(this.#proc.ready[0]) as { url: string; ops_url: string }
    this.url = url
    this.#opsUrl = ops_url
  }

  async metrics(): Promise<string> {
    return (await fetch(`${this.#opsUrl}/metrics`)).text()
  }

  async kill(): Promise<void> {
    await this.#proc?.kill('SIGKILL')
  }

  open(_n: number, { customer, prompt }: { customer: string; prompt: string }): StreamClient {
    const body = { prompt, customer_id: customer }
    const gateway = this.#proc?.name ?? ''
    const record = (entry: Entry) => void this.history.push(entry)
    return new StreamClient({ url: this.url, gateway, path: '/agent/run', body, customer }, { record })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#procs[Symbol.asyncDispose]()
    process.off('exit', this.#clean)
    this.#clean()
  }

  #env(): Record<string, string> {
    return {
      MODEL_PROVIDER: 'demo',
      HOST: '127.0.0.1',
      PORT: '0',
      OPS_PORT: '0',
      RATE_LIMIT_RPM: '0',
      DATA_DIR: this.dataDir,
      NODE_COMPILE_CACHE: resolve('node_modules/.cache/compile'),
      ...this.#settings,
    }
  }

  readonly #clean = (): void => rmSync(this.dataDir, { recursive: true, force: true })
}
