import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { builtProgram } from '../../scripts/built-programs.ts'
import { type Child, type Exit, spawnChild } from '../../scripts/local-services/child.ts'
import { freePort } from '../../scripts/local-services/free-port.ts'
import { COMPILE_CACHE, NODE_FLAGS } from '../../scripts/node-options.ts'
import { until } from '../support/until.ts'
import { ComposeStores } from './compose-stores.ts'
import { productServices, readCompose, readEnvExample } from './files.ts'
import { Nginx } from './nginx.ts'

const READY_MS = 60_000
const STOP_MS = 20_000

/** A service of compose.yaml as a process on this machine. Its replacements have the same ports. */
type Place = {
  name: string
  role: string
  program: string
  env: Record<string, string>
  opsPort: number
  child?: Child
}

type Data = { stores: ComposeStores; dataDir: string }

/**
 * The services of compose.yaml as processes on this machine, of the programs as the image has them, with the environment of compose.yaml and .env.example. Only addresses,
 * ports and folders are replaced, and what `settings` says.
 */
export class ComposeCluster implements AsyncDisposable {
  readonly nginx: Nginx
  /** The exits of the processes that were replaced, by the service's name. */
  readonly exits: { name: string; exit: Exit }[] = []
  readonly #places: readonly Place[]
  readonly stores: ComposeStores
  readonly #dataDir: string

  private constructor(nginx: Nginx, places: readonly Place[], data: Data) {
    this.nginx = nginx
    this.#places = places
    this.stores = data.stores
    this.#dataDir = data.dataDir
  }

  /**
   * No two processes see the same workspaces, and a replacement finds none: `settings` name a store for them. `without` names services that
   * are not needed.
   */
  static async start(
    settings: Readonly<Record<string, string>>,
    { without = [] }: { without?: readonly string[] } = {},
  ): Promise<ComposeCluster> {
    const stores = await ComposeStores.start()
    const dataDir = await mkdtemp(join(tmpdir(), 'agent-engine-compose-'))
    const services = productServices(readCompose()).filter(({ name }) => !without.includes(name))
    const places = await Promise.all(
      services.map(async ({ name, role, service }): Promise<Place> => {
        const opsPort = await freePort()
        const own = { ...readEnvExample(), ...withoutFiles(service.environment), ...settings }
        const env = {
          ...own,
          ...stores.urls,
          ...placesOf(join(dataDir, name)),
          PORT: String(await freePort()),
          OPS_PORT: String(opsPort),
        }
        const [, program = ''] = /^services\/(\w+)\/main\.ts$/.exec(service.command[0] ?? '') ?? []
        return { name, role, program: await builtProgram(program), env, opsPort }
      }),
    )
    const gateways = places.filter(({ role }) => role === 'gateway')
    const nginx = await Nginx.start(gateways.map(({ env }) => Number(env['PORT'])))
    const cluster = new ComposeCluster(nginx, places, { stores, dataDir })
    try {
      const others = places.filter(({ role }) => role !== 'gateway')
      for (const place of [...others, ...gateways]) await launch(place) // A gateway is ready when it knows a worker.
      return cluster
    } catch (cause) {
      await cluster[Symbol.asyncDispose]()
      throw cause
    }
  }

  /** The public address, through nginx. */
  get url(): string {
    return `${this.nginx.url}/api/v1`
  }

  get names(): string[] {
    return this.#places.map(({ name }) => name)
  }

  /** Ends the process of a service with SIGTERM and starts the next one. Resolves when it is ready, as `compose up --wait` does. */
  async replace(name: string): Promise<void> {
    const place = this.#places.find((each) => each.name === name)
    if (!place?.child) throw new Error(`compose.yaml has no service ${name}`)
    this.exits.push({ name, exit: await place.child.stop(STOP_MS) })
    await rm(join(this.#dataDir, name), { recursive: true, force: true })
    await launch(place)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#places.flatMap(({ child }) => child?.stop(STOP_MS) ?? []))
    await this.nginx[Symbol.asyncDispose]()
    await this.stores[Symbol.asyncDispose]()
    await rm(this.#dataDir, { recursive: true, force: true })
  }
}

/** The secrets of a container are files. Here the stores and `settings` give them. */
const withoutFiles = (environment: Readonly<Record<string, string>> = {}): Record<string, string> =>
  Object.fromEntries(Object.entries(environment).filter(([, value]) => !value.startsWith('/run/secrets/')))

const placesOf = (dataDir: string) => ({
  HOST: '127.0.0.1',
  DATA_DIR: dataDir,
  WORKSPACE_DIR: join(dataDir, 'workspaces'),
  PATH: process.env['PATH'] ?? '',
  NODE_COMPILE_CACHE: COMPILE_CACHE,
})

/** Starts a process. One that ends before it is ready is started again, as Docker does with `restart: unless-stopped`. */
async function launch(place: Place): Promise<void> {
  const { name, program, env, opsPort } = place
  const spec = { name, command: process.execPath, args: [...NODE_FLAGS, program], env }
  const isReady = async () => {
    if (!place.child?.isRunning) place.child = await spawnChild(spec)
    const answer = await fetch(`http://127.0.0.1:${opsPort}/readyz`).catch(() => undefined)
    await answer?.body?.cancel()
    return answer?.ok
  }
  await until(isReady, {
    what: `${name} to be ready`,
    withinMs: READY_MS,
    everyMs: 100,
    lastSeen: () => place.child?.output,
  })
}
