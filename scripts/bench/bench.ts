import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { builtProgram } from '../built-programs.ts'
import { COMPILE_CACHE, NODE_FLAGS } from '../node-options.ts'
import { GATEWAY, PROVIDER } from './dialect.ts'
import type { Processes, Running } from './processes.ts'

const ROOT = join(import.meta.dirname, '../..')

/** The processes that a figure measures: the provider, the baseline and the product. Each starts when it is first used. */
export class Bench {
  readonly isQuick: boolean
  readonly signal: AbortSignal
  readonly #processes: Processes
  readonly #shared: Map<string, Promise<Running>>

  constructor(options: { isQuick: boolean; signal: AbortSignal; processes: Processes; shared: SharedProcesses }) {
    this.isQuick = options.isQuick
    this.signal = options.signal
    this.#processes = options.processes
    this.#shared = options.shared
  }

  /** `full`, or `quick` in the quick form. */
  pick(full: number, quick: number): number {
    return this.isQuick ? quick : full
  }

  provider(): Promise<Running> {
    return this.#share('provider', () => this.#start('provider', 'test/support/model-server/main.ts', {}))
  }

  /** A provider that answers every request with the same JSON. */
  jsonProvider(): Promise<Running> {
    return this.#share('json-provider', () =>
      this.#start('json-provider', 'scripts/bench/programs/json-provider.ts', {}),
    )
  }

  baseline(): Promise<Running> {
    return this.#share('baseline', () => this.startBaseline())
  }

  ours(): Promise<Running> {
    return this.#share('ours', () => this.startOurs('data-shared'))
  }

  async startBaseline(env: Record<string, string> = {}): Promise<Running> {
    const provider = await this.provider()
    return this.#start('baseline', 'scripts/bench/baseline.ts', { MODEL_BASE_URL: urlOf(provider), ...env })
  }

  /** Starts a server of another package, whose program is outside of this project. */
  async startPeer(name: string, script: string): Promise<Running> {
    const provider = await this.provider()
    const env = { NODE_COMPILE_CACHE: COMPILE_CACHE, MODEL_BASE_URL: urlOf(provider) }
    return this.#processes.start({ name, script, dialect: GATEWAY, env }, this.signal)
  }

  /** Starts a step of the ladder, which STEP in `env` names. */
  async startStep(env: Record<string, string>): Promise<Running> {
    const provider = await this.provider()
    const own = { NODE_COMPILE_CACHE: COMPILE_CACHE, MODEL_BASE_URL: urlOf(provider) }
    return this.#start('step', 'scripts/bench/ladder/step.ts', { ...own, ...env })
  }

  /** Starts a new process of the product as the image has it. Processes with the same folder must run one after the other; each finds the data of the one before. */
  async startOurs(folder = 'data', env: Record<string, string> = {}): Promise<Running> {
    const provider = await this.provider()
    const dataDir = join(this.#processes.dir, folder)
    mkdirSync(dataDir, { recursive: true })
    return this.#start('ours', await builtProgram('standalone'), {
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      MODEL_PROVIDER: 'openai-compatible',
      MODEL: 'bench',
      MODEL_BASE_URL: urlOf(provider),
      RATE_LIMIT_RPM: '0',
      RUNS_PER_WORKER: '2000',
      OPS_PORT: '0',
      DATA_DIR: dataDir,
      ...env,
    })
  }

  /** Starts the yardstick for uploads; its backend listens on the port. */
  startUploadPipe(backendPort: number): Promise<Running> {
    const env = { BACKEND_PORT: String(backendPort), DATA_DIR: this.#processes.dir }
    return this.#start('upload-pipe', 'scripts/bench/programs/upload-pipe.ts', env)
  }

  #share(name: string, start: () => Promise<Running>): Promise<Running> {
    const running = this.#shared.get(name) ?? start()
    this.#shared.set(name, running)
    running.catch(() => this.#shared.delete(name))
    return running
  }

  #start(name: string, script: string, env: Record<string, string>): Promise<Running> {
    const dialect = name === 'provider' ? PROVIDER : GATEWAY
    const flags = name === 'ours' || name === 'step' ? NODE_FLAGS : []
    return this.#processes.start({ name, flags, script: resolve(ROOT, script), dialect, env }, this.signal)
  }
}

/** Processes that several figures use. */
export type SharedProcesses = Map<string, Promise<Running>>

const urlOf = ({ port }: Running): string => `http://127.0.0.1:${port}/v1`
