import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { NODE_FLAGS } from '../../scripts/node-options.ts'
import { withDeadline } from '../../shared/kernel/async/deadline.ts'
import { Child } from '../support/child.ts'

export type Role = 'standalone' | 'gateway' | 'worker' | 'executor'

/** A process of the product. `url` includes the base path; workers and executors have none. */
export type Server = {
  name: string
  pid: number
  url: string
  opsUrl: string
  lines: readonly string[]
  /** Sends SIGTERM and resolves with the exit code. */
  stop(): Promise<number | null>
  /** Sends SIGKILL and waits for the exit. */
  kill(): Promise<void>
}

const READY_WITHIN_MS = 90_000
const STOP_WITHIN_MS = 30_000

/** The processes of one scenario and their DATA_DIR. Disposing of it kills them and removes the folder. */
export class Processes implements AsyncDisposable {
  readonly dataDir = mkdtempSync(join(tmpdir(), 'agent-engine-security-'))
  readonly #children: Child[] = []
  readonly #env: Readonly<Record<string, string>>

  /** `env` holds settings of every process. */
  constructor(env: Readonly<Record<string, string>> = {}) {
    this.#env = env
    process.once('exit', this.#killAll) // Where nothing can be awaited.
  }

  /** Every line that any process has written, those of ended processes included. */
  get lines(): string[] {
    return this.#children.flatMap(({ lines }) => lines)
  }

  async start(role: Role, env: Readonly<Record<string, string>> = {}): Promise<Server> {
    const main = fileURLToPath(new URL(`../../services/${role}/main.ts`, import.meta.url))
    const place = { HOST: '127.0.0.1', PORT: '0', OPS_PORT: '0', DATA_DIR: this.dataDir }
    const settings = { MODEL_PROVIDER: 'demo', RATE_LIMIT_RPM: '0', DRAIN_SECS: '1', ...place }
    const child = new Child(process.execPath, [...NODE_FLAGS, main], { ...settings, ...this.#env, ...env })
    this.#children.push(child)
    const late = () => new Error(`the ${role} did not start: ${child.lines.join('\n')}`)
    const line = await withDeadline(child.line(/"msg":"listening"/), READY_WITHIN_MS, late)
    const { url = '', ops_url: opsUrl = '' } = JSON.parse(line) as { url?: string; ops_url?: string }
    return {
      name: `${role} ${this.#children.length}`,
      pid: child.process.pid ?? 0,
      url,
      opsUrl,
      lines: child.lines,
      stop: () => withDeadline(child.end('SIGTERM'), STOP_WITHIN_MS, () => new Error(`the ${role} did not end`)),
      kill: async () => void (await child.end('SIGKILL')),
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#children.map((child) => (isRunning(child) ? child.end('SIGKILL') : child.exited)))
    process.off('exit', this.#killAll)
    this.#killAll()
  }

  readonly #killAll = (): void => {
    for (const child of this.#children) if (isRunning(child)) child.process.kill('SIGKILL')
    rmSync(this.dataDir, { recursive: true, force: true })
  }
}

const isRunning = ({ process: { exitCode, signalCode } }: Child): boolean => exitCode === null && signalCode === null
