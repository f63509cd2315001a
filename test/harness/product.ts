import { once } from 'node:events'
import { readdirSync, rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Child } from '../support/child.ts'

const MAIN = fileURLToPath(new URL('../../services/standalone/main.ts', import.meta.url))
const START_WITHIN_MS = 15_000
const STOP_WITHIN_MS = 8_000

type Start = {
  env?: Record<string, string>
  /** A module that Node loads before the product, into the same process. */
  preload?: URL
}

/** The product as a process of its own, on a free port and in an empty folder. Disposing of it ends both. */
export class Product implements AsyncDisposable {
  readonly port: number
  readonly dataDir: string
  readonly #child: Child
  readonly #kill: () => void

  private constructor(child: Child, port: number, dataDir: string) {
    this.#child = child
    this.port = port
    this.dataDir = dataDir
    this.#kill = () => {
      child.process.kill('SIGKILL')
      rmSync(dataDir, { recursive: true, force: true })
    }
    process.once('exit', this.#kill) // Where this process is ended itself, nothing can be awaited any more.
  }

  static async start({ env = {}, preload }: Start = {}): Promise<Product> {
    const dataDir = await mkdtemp(join(tmpdir(), 'agent-engine-abuse-'))
    const settings = { MODEL_PROVIDER: 'demo', RATE_LIMIT_RPM: '0', DRAIN_SECS: '0', ...env }
    const before = preload ? ['--expose-gc', '--import', preload.href] : []
    const place = { PORT: '0', OPS_PORT: '0', DATA_DIR: dataDir }
    const child = new Child(process.execPath, [...before, MAIN], { ...settings, ...place })
    try {
      const line = await within(START_WITHIN_MS, child.line(/"msg":"listening"/))
      return new Product(child, Number(new URL((JSON.parse(line) as { url: string }).url).port), dataDir)
    } catch (cause) {
      await child.end('SIGKILL')
      await rm(dataDir, { recursive: true, force: true })
      throw cause
    }
  }

  get pid(): number {
    return this.#child.process.pid ?? 0
  }

  /** All that it has written so far. */
  get lines(): readonly string[] {
    return this.#child.lines
  }

  get isRunning(): boolean {
    return this.#child.process.exitCode === null && this.#child.process.signalCode === null
  }

  /** Sockets, files and pipes. */
  get openFiles(): number {
    return readdirSync(`/proc/${this.pid}/fd`).length
  }

  signal(name: NodeJS.Signals): void {
    this.#child.process.kill(name)
  }

  /** Ends it as an operator does, and tells its exit code. */
  async stop(): Promise<number | null> {
    if (this.isRunning) this.signal('SIGTERM')
    return within(STOP_WITHIN_MS, this.#child.exited)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.isRunning) this.signal('SIGKILL')
    await this.#child.exited
    process.off('exit', this.#kill)
    await rm(this.dataDir, { recursive: true, force: true })
  }
}

/** Another program of this project that says where it listens, such as the model server. */
export async function startHelper(script: URL): Promise<AsyncDisposable & { url: string }> {
  const child = new Child(process.execPath, [fileURLToPath(script)], {})
  const kill = () => void child.process.kill('SIGKILL')
  process.once('exit', kill)
  const line = await within(START_WITHIN_MS, child.line(/^listening /))
  const stop = async () => {
    kill()
    if (child.process.exitCode === null && child.process.signalCode === null) await once(child.process, 'exit')
    process.off('exit', kill)
  }
  return { url: line.slice('listening '.length), [Symbol.asyncDispose]: stop }
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const timer = new AbortController()
  const late = sleep(ms, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`nothing within ${ms} ms`)
  })
  late.catch(() => {}) // Ended below once the work is done.
  try {
    return await Promise.race([work, late])
  } finally {
    timer.abort()
  }
}
