import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { NODE_FLAGS } from '../../scripts/node-options.ts'
import type { Random } from '../harness/seed.ts'
import { type ClusterRedis, startClusterRedis } from '../support/cluster-redis.ts'
import { type Answered, type Asked, ask } from './ask.ts'
import { check } from './checker.ts'
import { readMembers } from './cluster/members.ts'
import { type Entry, now, type Violation } from './history.ts'
import { LIMITS, type Limits } from './limits.ts'
import { type Proc, Procs } from './procs.ts'
import { type RedisProxy, startRedisProxy } from './redis-proxy.ts'
import { StreamClient, type StreamRequest } from './stream-client.ts'

export type WorldOptions = {
  random: Random
  gateways?: number
  workers?: number
  /** They need MONGODB_URL in `env`. */
  executors?: number
  /** The Redis of the processes, which the scenario has started. By default the world's own. */
  redisUrl?: string
  /** Puts a fault proxy between each process, or each of a role, and Redis. All proxies run in this process. */
  hasProxies?: boolean | Role
  /** Settings of every process, or of the process of this role and name. They replace the defaults, which choose the demo model. */
  env?: Settings | ((role: Role, name: string) => Settings)
  /** Headers of every request. */
  headers?: Settings
  /** Called with everything that the processes print, and the name of the one. */
  onOutput?: (text: string, name: string) => void
}

type Settings = Readonly<Record<string, string>>
export type Role = 'gateway' | 'worker' | 'executor'

/** A process under test. `url` is a gateway's, with the base path. */
export type Member = { role: Role; name: string; proc: Proc; url: string; proxy?: RedisProxy }

type Stopping = { withinMs: number; noticedAfterMs: number }

/**
 * A cluster of real processes with its own Redis, and the history of what happens to it. The lists hold the running
 * members; a replacement has a new name. Disposing of it ends everything.
 */
export class World implements AsyncDisposable {
  readonly history: Entry[] = []
  readonly redis: ClusterRedis
  readonly dataDir = mkdtempSync(join(tmpdir(), 'agent-engine-chaos-'))
  gateways: Member[] = []
  workers: Member[] = []
  executors: Member[] = []
  readonly #options: WorldOptions
  readonly #procs = new Procs((entry) => this.record(entry))
  readonly #proxies: RedisProxy[] = []
  readonly #violations: Violation[] = []
  /** The streams of ended rounds. */
  readonly #earlier = new Set<string | undefined>()
  readonly #started: Record<Role, number> = { gateway: 0, worker: 0, executor: 0 }
  /** Members by the epoch that their runs' ids begin with. */
  readonly #byEpoch = new Map<number, Member>()

  private constructor(redis: ClusterRedis, options: WorldOptions) {
    this.redis = redis
    this.#options = options
    process.once('exit', this.#clean)
  }

  /** Resolves when every gateway has started runs on every worker. */
  static async open(options: WorldOptions): Promise<World> {
    const world = new World(await startClusterRedis({ hasReplicas: true }), options)
    try {
      const { gateways = 2, workers = 4, executors = 0 } = options
      await Promise.all([
        ...Array.from({ length: workers }, () => world.start('worker')),
        ...Array.from({ length: executors }, () => world.start('executor')),
        ...Array.from({ length: gateways }, () => world.start('gateway')),
      ])
      await Promise.all(world.gateways.map((gateway) => world.#waitForWorkers(gateway, workers)))
      return world
    } catch (cause) {
      await world[Symbol.asyncDispose]()
      throw cause
    }
  }

  get headers(): Settings {
    return this.#options.headers ?? {}
  }

  /** What a stream of an ended round brings proves nothing: that it had not ended is recorded already. */
  record(entry: Entry): void {
    if (!('stream' in entry && this.#earlier.has(entry.stream))) this.history.push(entry)
  }

  /** The violations in the history, those of ended rounds included. */
  check(limits: Limits = LIMITS): Violation[] {
    return [...this.#violations, ...check(this.history, limits)]
  }

  /** Checks the history and clears it. For scenarios of many rounds, when all streams of the round have ended. */
  endRound(): void {
    this.#violations.push(...check(this.history))
    for (const entry of this.history) if ('stream' in entry) this.#earlier.add(entry.stream)
    this.history.length = 0
  }

  async start(role: Role): Promise<Member> {
    const name = `${role} ${++this.#started[role]}`
    const { hasProxies, onOutput } = this.#options
    const proxy = hasProxies === true || hasProxies === role ? await this.#startProxy(name) : undefined
    const proc = await this.#procs.start({
      name,
      args: [
        ...NODE_FLAGS,
        ...(proxy && this.#isRedisCluster ? ['--import', throughProxy(proxy)] : []),
        `services/${role}/main.ts`,
      ],
      env: this.#envOf(role, name, proxy),
      ready: /^\{.*"msg":"listening".*\}$/m,
      ...(onOutput && { onOutput: (text) => onOutput(text, name) }),
    })
    const { id, url = '' } = JSON.parse(proc.ready[0]) as { id: string; url?: string }
    const member: Member = { role, name, proc, url: url.replace('//0.0.0.0:', '//127.0.0.1:'), ...(proxy && { proxy }) }
    this.#byEpoch.set(Number(id.slice(id.indexOf('_') + 1)), member)
    this.#listOf(role).push(member)
    return member
  }

  /** Sends SIGKILL and removes the member from the lists. */
  async kill(member: Member): Promise<void> {
    this.#remove(member)
    await member.proc.kill('SIGKILL')
  }

  /**
   * Sends SIGTERM and resolves with the time until the exit. After `withinMs` it sends SIGKILL, which the checker reports.
   * Clients use the member until `noticedAfterMs`, as a load balancer does that has not noticed the drain yet.
   */
  async stop(member: Member, { withinMs, noticedAfterMs }: Stopping): Promise<{ ms: number; code: number | null }> {
    const from = now()
    const noticed = setTimeout(() => this.#remove(member), noticedAfterMs)
    const { code } = await member.proc.stop(withinMs)
    clearTimeout(noticed)
    this.#remove(member)
    return { ms: now() - from, code }
  }

  /** Kills Redis, which loses its data. `redis.restart()` starts it again. */
  async killRedis(): Promise<void> {
    this.record({ kind: 'killed', t: now(), what: 'redis', signal: 'SIGKILL' })
    await this.redis.kill('SIGKILL')
  }

  /** Reads the members' epochs from Redis again: an evicted process rejoins under a new epoch. */
  async refreshEpochs(): Promise<void> {
    for (const { epoch, pid } of await this.redis.withClient(readMembers)) {
      const member = [...this.workers, ...this.executors, ...this.gateways].find(({ proc }) => proc.pid === pid)
      if (member) this.#byEpoch.set(epoch, member)
    }
  }

  /** Whether the process is in the cluster's member list, from which an evicted one is removed. */
  async isMember({ proc }: Member): Promise<boolean> {
    return (await this.redis.withClient(readMembers)).some(({ pid }) => pid === proc.pid)
  }

  /** The worker that started the run, by the epoch in the run's id. */
  ownerOf(run: string): Member | undefined {
    return this.#byEpoch.get(Number.parseInt(run.slice(4, 12), 16))
  }

  /** Opens a stream through a gateway and records it in the history. */
  stream(gateway: Member, { path, ...rest }: Omit<StreamRequest, 'url' | 'gateway'>): StreamClient {
    return new StreamClient(
      { url: gateway.url, gateway: gateway.name, path, headers: this.headers, ...rest },
      {
        record: (entry) => this.record(entry),
        onRun: (run) => {
          const owner = this.ownerOf(run)
          if (owner) this.record({ kind: 'owned', t: now(), run, process: owner.name })
        },
      },
    )
  }

  /** Starts a one-shot run. */
  run(gateway: Member, body: { prompt: string; [field: string]: unknown }): StreamClient {
    return this.stream(gateway, { path: '/agent/run', body })
  }

  /** Sends a request whose answer is not a stream. Never throws. */
  ask(gateway: Member, asked: Asked): Promise<Answered> {
    return ask(gateway.url, { ...asked, headers: { ...this.headers, ...asked.headers } })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#procs[Symbol.asyncDispose]()
    await Promise.all(this.#proxies.map((proxy) => proxy.close()))
    await this.redis.stop()
    process.off('exit', this.#clean)
    this.#clean()
  }

  get #isRedisCluster(): boolean {
    return this.redis.urls.length > 1
  }

  async #startProxy(name: string): Promise<RedisProxy> {
    const [target = '', ...others] = this.redis.urls
    const random = this.#options.random.fork(`proxy of ${name}`)
    const proxy = await startRedisProxy({ target, others, random })
    this.#proxies.push(proxy)
    return proxy
  }

  #envOf(role: Role, name: string, proxy: RedisProxy | undefined): Record<string, string> {
    const { env, redisUrl } = this.#options
    return {
      MODEL_PROVIDER: 'demo',
      HOST: '127.0.0.1',
      PORT: '0',
      OPS_PORT: '0',
      RATE_LIMIT_RPM: '0',
      DATA_DIR: this.dataDir,
      NODE_COMPILE_CACHE: resolve('node_modules/.cache/compile'),
      ...(redisUrl === undefined ? this.redis.env : { REDIS_URL: redisUrl }),
      ...(proxy && !this.#isRedisCluster && { REDIS_URL: proxy.url }),
      ...(typeof env === 'function' ? env(role, name) : env),
    }
  }

  #remove(member: Member): void {
    this.gateways = this.gateways.filter((each) => each !== member)
    this.workers = this.workers.filter((each) => each !== member)
    this.executors = this.executors.filter((each) => each !== member)
  }

  #listOf(role: Role): Member[] {
    return { gateway: this.gateways, worker: this.workers, executor: this.executors }[role]
  }

  /** Starts runs until every worker had one. A gateway ignores workers that it does not know yet. */
  async #waitForWorkers(gateway: Member, workers: number): Promise<void> {
    const deadline = now() + KNOWN_WITHIN_MS
    const seen = new Set<string>()
    while (seen.size < workers && now() < deadline) {
      const stream = this.run(gateway, { prompt: '/say hello' })
      await stream.ended
      if (!this.ownerOf(stream.run)) await this.refreshEpochs() // On a busy machine a process may be evicted at its start.
      const owner = this.ownerOf(stream.run)
      if (owner) seen.add(owner.name)
    }
    if (seen.size < workers)
      throw new Error(`${gateway.name} used ${seen.size} of ${workers} workers within ${KNOWN_WITHIN_MS} ms`)
  }

  readonly #clean = (): void => rmSync(this.dataDir, { recursive: true, force: true })
}

const KNOWN_WITHIN_MS = 60_000
/** The nodes of a Redis Cluster name each other, so a process finds its proxies by their ports. */
const throughProxy = ({ ports }: RedisProxy): string => {
  const url = new URL('proxy/through-proxy.ts', import.meta.url)
  url.searchParams.set('ports', JSON.stringify(ports))
  return url.href
}
