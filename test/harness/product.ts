import { once } from 'node:events'
import { readdirSync, rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { NODE_FLAGS } from '../../scripts/node-options.ts'
import { withDeadline } from '../../shared/kernel/async/deadline.ts'
import { Child } from '../support/child.ts'

const MAIN = fileURLToPath(new URL('../../services/standalone/main.ts', import.meta.url))
const START_WITHIN_MS = 60_000
const STOP_WITHIN_MS = 30_000

type Start = {
  env?: Record<string, string>
  /** A module that Node loads into the process before the product. */
  preload?: URL
}

/** The standalone form as a child process, on a free port and in an empty folder. Disposing of it kills the process and removes the folder. */
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
    process.once('exit', this.#kill) // For an exit of this process, where nothing can be awaited.
  }

  static async start({ env = {}, preload }: Start = {}): Promise<Product> {
    const dataDir = await mkdtemp(join(tmpdir(), 'agent-engine-attack-'))
    const settings = { MODEL_PROVIDER: 'demo', RATE_LIMIT_RPM: '0', DRAIN_SECS: '0', ...env }
    const nodeOptions = [...NODE_FLAGS, ...(preload ? ['--import', preload.href] : [])]
    const place = { PORT: '0', OPS_PORT: '0', DATA_DIR: dataDir }
    const child = new Child(process.execPath, [...nodeOptions, MAIN], { ...settings, ...place })
    try {
      const line = await firstLine(child, /"msg":"listening"/)
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

  /** The lines of stdout and stderr so far. */
  get lines(): readonly string[] {
    return this.#child.lines
  }

  get isRunning(): boolean {
    return this.#child.process.exitCode === null && this.#child.process.signalCode === null
  }

  /** The number of open file descriptors: sockets, files and pipes. */
  get openFiles(): number {
    return readdirSync(`/proc/${this.pid}/fd`).length
  }

  signal(name: NodeJS.Signals): void {
    this.#child.process.kill(name)
  }

  /** Sends SIGTERM and resolves with the exit code. Rejects when the process does not end within 30 s. */
  async stop(): Promise<number | null> {
    if (this.isRunning) this.signal('SIGTERM')
    return withDeadline(
      this.#child.exited,
      STOP_WITHIN_MS,
      () => new Error(`the product did not end within ${STOP_WITHIN_MS} ms of SIGTERM`),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.isRunning) this.signal('SIGKILL')
    await this.#child.exited
    process.off('exit', this.#kill)
    await rm(this.dataDir, { recursive: true, force: true })
  }
}

/** Starts another program of this project, such as a model server, and waits until it prints `listening <url>`. */
export async function startProgram(script: URL): Promise<AsyncDisposable & { url: string }> {
  const child = new Child(process.execPath, [fileURLToPath(script)], {})
  const kill = () => void child.process.kill('SIGKILL')
  process.once('exit', kill)
  const stop = async () => {
    kill()
    if (child.process.exitCode === null && child.process.signalCode === null) await once(child.process, 'exit')
    process.off('exit', kill)
  }
  try {
    const line = await firstLine(child, /^listening /)
    return { url: line.slice('listening '.length), [Symbol.asyncDispose]: stop }
  } catch (cause) {
    await stop()
    throw cause
  }
}

const firstLine = (child: Child, pattern: RegExp): Promise<string> =>
  withDeadline(
    child.line(pattern),
    START_WITHIN_MS,
    () => new Error(`no line like ${pattern} within ${START_WITHIN_MS} ms; output: ${child.lines.join('\n')}`),
  )
