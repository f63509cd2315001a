import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { aptInstall, canRun } from '../../scripts/local-services/apt.ts'
import { type Child, spawnChild } from '../../scripts/local-services/child.ts'
import { cacheDir } from '../../scripts/local-services/wheel.ts'
import { until } from '../support/until.ts'
import { type Answer, type CommandOptions, runCommand, tryCommand } from './command.ts'
import { composeFolder } from './compose-plugin.ts'

const START_MS = 60_000
const STOP_MS = 60_000
/** The exit code of `flock` when another process holds the lock. */
const LOCKED = 75

type Say = (line: string) => void
type Daemon = { child: Child; dir: string }

/** A Docker engine with the command line for it: the one that answers, or without one an own one, whose images are kept for the next run. */
export class Engine implements AsyncDisposable {
  /** The environment of `docker` for this engine. */
  readonly env: Readonly<NodeJS.ProcessEnv>
  readonly #own: Daemon | undefined

  private constructor(env: NodeJS.ProcessEnv, own?: Daemon) {
    this.env = env
    this.#own = own
  }

  static async start(say: Say): Promise<Engine> {
    const compose = async () => {
      const folder = await composeFolder(say)
      return { ...process.env, ...(folder !== undefined && { DOCKER_CONFIG: folder }) }
    }
    if (await canRun('docker', 'version')) return new Engine(await compose())
    await installEngine(say)
    const dir = await mkdtemp(join(tmpdir(), 'agent-engine-docker-'))
    const child = await startDaemon(dir)
    const env = { ...(await compose()), DOCKER_HOST: `unix://${dir}/socket` }
    say(`Started a Docker engine: DOCKER_HOST=${env.DOCKER_HOST} (pid ${child.pid}).`)
    return new Engine(env, { child, dir })
  }

  /** Whether it was started here. It then reaches no registry of images, as far as is known. */
  get isOwn(): boolean {
    return this.#own !== undefined
  }

  /** Runs `docker` and returns its standard output. Throws with the end of its output when it fails. */
  docker(args: readonly string[], options: CommandOptions = {}): Promise<string> {
    return runCommand('docker', args, { ...options, env: { ...this.env, ...options.env } })
  }

  /** Runs `docker`, whatever its exit code. */
  tryDocker(args: readonly string[], options: CommandOptions = {}): Promise<Answer> {
    return tryCommand('docker', args, { ...options, env: { ...this.env, ...options.env } })
  }

  /** Removes the containers of an own engine and ends it. Leaves another one as it is. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#own === undefined) return
    const ids = (await this.docker(['ps', '--all', '--quiet'])).split('\n').filter(Boolean)
    if (ids.length > 0) await this.docker(['rm', '--force', '--volumes', ...ids])
    await this.docker(['network', 'prune', '--force'])
    const { child, dir } = this.#own
    const daemon = await daemonOf(child)
    process.kill(daemon, 'SIGTERM')
    const timer = setTimeout(() => process.kill(daemon, 'SIGKILL'), STOP_MS)
    await child.exited
    clearTimeout(timer)
    await rm(dir, { recursive: true, force: true })
  }
}

async function installEngine(say: Say): Promise<void> {
  const packages = { dockerd: 'docker.io', docker: 'docker.io', iptables: 'iptables' }
  for (const [program, name] of Object.entries(packages)) {
    if (await canRun(program)) continue
    say(`Installing ${program} (apt-get install ${name}) ...`)
    await aptInstall(name)
    if (await canRun(program)) continue
    throw new Error(
      `No Docker engine answers, and apt-get could not install ${name}: start one, or set DOCKER_HOST to one.`,
    )
  }
  if (process.getuid?.() === 0) return
  throw new Error(
    'No Docker engine answers, and only root can start one: start one, set DOCKER_HOST to one, or use sudo.',
  )
}

/**
 * Starts dockerd as the first process of a namespace, so that its containers and mounts end with it, however it ends. It ends with this
 * process. The folder of its images serves one engine at a time.
 */
async function startDaemon(dir: string): Promise<Child> {
  const root = join(cacheDir(), 'docker')
  await mkdir(root, { recursive: true })
  const lock = ['--nonblock', '--no-fork', '--conflict-exit-code', String(LOCKED), join(root, 'lock')]
  const namespace = ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child=SIGTERM']
  const places = ['--data-root', join(root, 'data'), '--exec-root', join(dir, 'run'), '--pidfile', join(dir, 'pid')]
  const args = [...lock, ...namespace, 'dockerd', ...places, '--host', `unix://${dir}/socket`]
  const child = await spawnChild({ name: 'dockerd', command: 'flock', args, ownDir: dir })
  const env = { ...process.env, DOCKER_HOST: `unix://${dir}/socket` }
  const isReady = async () => {
    if (child.isRunning) return (await tryCommand('docker', ['version'], { env })).code === 0
    if ((await child.exited).code === LOCKED)
      throw new Error(
        `Another process uses the engine of ${root}: wait until it ends, or set XDG_CACHE_HOME to another folder.`,
      )
    throw child.failure('ended')
  }
  await until(isReady, { what: 'dockerd to answer', withinMs: START_MS, everyMs: 200, lastSeen: () => child.output })
  return child
}

/** The process below `unshare`. */
async function daemonOf({ pid }: Child): Promise<number> {
  return Number(await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8'))
}
