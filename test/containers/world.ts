import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from '../../scripts/local-services/free-port.ts'
import { AgentEngine } from '../../shared/client/client.ts'
import { ROOT } from '../deploy/files.ts'
import { commandsOf } from '../documents/blocks.ts'
import { until } from '../support/until.ts'
import { type Answer, runCommand } from './command.ts'
import type { Engine } from './engine.ts'

/** The name of the Compose project, which is not the one of a cluster that the machine runs. */
const PROJECT = 'agent-engine-test'
const OUTSIDE = `${PROJECT}-outside`
/** Settings that README.md leaves at their defaults, and the scenarios need. */
const SETTINGS = { RATE_LIMIT_RPM: '0', ALLOW_PRIVATE_URLS: 'true', DURABILITY: 'runs', TOOL_PERMISSIONS: '' }
const HEALTHY_MS = 120_000

/** The cluster of compose.yaml in an unpacked release, on an engine. */
export class World {
  readonly engine: Engine
  /** The unpacked release. */
  readonly folder: string
  readonly #port: number

  constructor(engine: Engine, folder: string, port: number) {
    this.engine = engine
    this.folder = folder
    this.#port = port
  }

  static async open(engine: Engine, folder: string): Promise<World> {
    return new World(engine, folder, await freePort())
  }

  /** The address of nginx. */
  get origin(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  get url(): string {
    return `${this.origin}/api/v1`
  }

  get client(): AgentEngine {
    return new AgentEngine({ url: this.url })
  }

  /** Executes the commands of README.md that start the cluster, with settings of this test in `.env` before the last ones. */
  async start(): Promise<void> {
    const readme = await readFile(join(this.folder, 'deploy/README.md'), 'utf8')
    const lines = commandsOf(readme)[0]?.text.split('\n') ?? []
    const up = lines.findIndex((line) => line.includes(' up '))
    await this.shell(lines.slice(0, up).join('\n'))
    await this.set({ ...SETTINGS, HTTP_PORT: String(this.#port) })
    await this.shell(lines.slice(up).join('\n')).catch(async (cause: unknown) => {
      throw new Error(`the cluster did not start:\n${await this.compose('logs', '--no-color', '--tail', '5')}`, {
        cause,
      })
    })
  }

  /** Runs commands of bash in the release's folder. */
  shell(commands: string): Promise<string> {
    const env = {
      ...this.engine.env,
      COMPOSE_PROJECT_NAME: PROJECT,
      ...(this.engine.isOwn && { DOCKER_BUILDKIT: '0' }),
    }
    return runCommand('bash', ['-c', `set -euo pipefail\n${commands}`], { cwd: this.folder, env })
  }

  /** Runs `docker compose` in deploy/. Throws when it fails. */
  compose(...args: string[]): Promise<string> {
    return this.engine.docker(['compose', '--project-name', PROJECT, ...args], this.#inDeploy)
  }

  tryCompose(...args: string[]): Promise<Answer> {
    return this.engine.tryDocker(['compose', '--project-name', PROJECT, ...args], this.#inDeploy)
  }

  get #inDeploy() {
    return { cwd: join(this.folder, 'deploy') }
  }

  /** The services that run a process of the product. */
  async services(): Promise<string[]> {
    const names = (await this.compose('config', '--services')).split('\n')
    return names.filter((name) => /^(gateway|worker|executor)-/.test(name))
  }

  /** The container of a service. */
  nameOf(service: string): string {
    return `${PROJECT}-${service}-1`
  }

  /** Sets variables in `.env`. */
  async set(variables: Readonly<Record<string, string>>): Promise<void> {
    const file = join(this.folder, 'deploy/.env')
    const kept = (await readFile(file, 'utf8')).split('\n').filter((line) => !((line.split('=')[0] ?? '') in variables))
    await writeFile(
      file,
      `${[...kept, ...Object.entries(variables).map(([name, value]) => `${name}=${value}`)].join('\n')}\n`,
    )
  }

  /** The secrets of deploy/secrets, and the passwords in them. */
  async secrets(): Promise<
    Record<'masterKey' | 'redisUrl' | 'mongodbUrl' | 'redisPassword' | 'mongodbPassword', string>
  > {
    const read = async (name: string) => (await readFile(join(this.folder, 'deploy/secrets', name), 'utf8')).trim()
    const [masterKey, redisUrl, mongodbUrl] = (await Promise.all(
      (['master-key', 'redis-url', 'mongodb-url'] as const).map(read),
    )) as [string, string, string]
    const passwordOf = (url: string) => new URL(url).password
    return {
      masterKey,
      redisUrl,
      mongodbUrl,
      redisPassword: passwordOf(redisUrl),
      mongodbPassword: passwordOf(mongodbUrl),
    }
  }

  /** Starts the model provider and issuer of `outside.ts`, which the cluster reaches as `outside`. */
  async startOutside(): Promise<void> {
    const place = ['--network', `${PROJECT}_outside`, '--network-alias', 'outside', '--volume', `${ROOT}:/repo:ro`]
    const program = ['agent-engine', '/repo/test/containers/outside.ts']
    await this.engine.docker(['run', '--detach', '--name', OUTSIDE, '--no-healthcheck', ...place, ...program])
    await until(() => this.ask('/jwks'), { what: 'the provider and issuer to answer', everyMs: 200 })
  }

  async stopOutside(): Promise<void> {
    await this.engine.tryDocker(['rm', '--force', '--volumes', OUTSIDE])
  }

  /** Reads from `outside.ts`. Returns undefined when it does not answer. */
  async ask(path: string): Promise<Record<string, unknown> | undefined> {
    const script = `fetch('http://127.0.0.1:9100${path}').then(async (answer) => console.log(await answer.text()))`
    const { code, stdout } = await this.engine.tryDocker(['exec', OUTSIDE, 'node', '-e', script])
    return code === 0 ? (JSON.parse(stdout) as Record<string, unknown>) : undefined
  }

  /** The health of a service's container, such as `healthy`. */
  async health(service: string): Promise<string> {
    return (await this.engine.docker(['inspect', '--format', '{{.State.Health.Status}}', this.nameOf(service)])).trim()
  }

  /** Waits for the health of a service's container. */
  async untilHealth(service: string, wanted: string): Promise<void> {
    const isThere = async () => (await this.health(service)) === wanted
    await until(isThere, { what: `${service} to be ${wanted}`, withinMs: HEALTHY_MS, everyMs: 500 })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopOutside()
    await this.tryCompose('down', '--volumes', '--timeout', '5')
  }
}
