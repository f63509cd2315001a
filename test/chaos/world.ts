import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Redis } from 'ioredis'
import { type RedisServer, startRedis } from '../../scripts/local-services/redis.ts'
import type { Random } from '../harness/seed.ts'
import { type Answered, type Asked, ask } from './ask.ts'
import { check } from './checker.ts'
import { type Entry, now, type Violation } from './history.ts'
import { LIMITS, type Limits } from './limits.ts'
import { type Proc, Procs } from './procs.ts'
import { type RedisProxy, startRedisProxy } from './redis-proxy.ts'
import { StreamClient, type StreamRequest } from './stream-client.ts'

export type WorldOptions = {
  random: Random
  gateways?: number
  workers?: number
  /** Every process sees Redis through a fault proxy of its own. */
  hasProxies?: boolean
  /** Of every process; the last word. The model is the demo one unless this says otherwise. */
  env?: Readonly<Record<string, string>>
}

type Role = 'gateway' | 'worker'

/** A process under test. `url` is a gateway's, with the base path. */
export type Member = { role: Role; name: string; proc: Proc; url: string; proxy?: RedisProxy }

type Stopping = { withinMs: number; noticedAfterMs: number }

/**
 * A cluster of real processes over a Redis of its own, and the history of what happens to it. Members that are killed are
 * out of its lists; what is started anew has a new name. Disposing of it ends everything.
 */
export class World implements AsyncDisposable {
  readonly history: Entry[] = []
  readonly redis: RedisServer
  readonly dataDir = mkdtempSync(join(tmpdir(), 'agent-engine-chaos-'))
  gateways: Member[] = []
  workers: Member[] = []
  readonly #options: WorldOptions
  readonly #procs = new Procs((entry) => this.record(entry))
  readonly #proxies: RedisProxy[] = []
  readonly #found: Violation[] = []
  readonly #started: Record<Role, number> = { gateway: 0, worker: 0 }
  /** By the epoch that the ids of their runs begin with. */
  readonly #byEpoch = new Map<number, Member>()

  private constructor(redis: RedisServer, options: WorldOptions) {
    this.redis = redis
    this.#options = options
    process.once('exit', this.#clean)
  }

  /** Resolves once every gateway takes a run. */
  static async open(options: WorldOptions): Promise<World> {
    const world = new World(await startRedis(), options)
    try {
      const { gateways = 2, workers = 4 } = options
      await Promise.all([
        ...Array.from({ length: workers }, () => world.start('worker')),
        ...Array.from({ length: gateways }, () => world.start('gateway')),
      ])
      await Promise.all(world.gateways.map((gateway) => world.#knowsWorkers(gateway, workers)))
      return world
    } catch (cause) {
      await world[Symbol.asyncDispose]()
      throw cause
    }
  }

  record(entry: Entry): void {
    this.history.push(entry)
  }

  /** Everything in the history that is forbidden. */
  check(limits: Limits = LIMITS): Violation[] {
    return [...this.#found, ...check(this.history, limits)]
  }

  /** Judges the history so far and forgets it: for scenarios in many rounds, when all that was under way has ended. */
  endRound(): void {
    this.#found.push(...check(this.history))
    this.history.length = 0
  }

  async start(role: Role): Promise<Member> {
    const name = `${role} ${++this.#started[role]}`
    const { random, hasProxies } = this.#options
    const proxy = hasProxies
      ? await startRedisProxy({ target: this.redis.url, random: random.fork(`proxy of ${name}`) })
      : undefined
    if (proxy) this.#proxies.push(proxy)
    const proc = await this.#procs.start({
      name,
      args: ['--max-semi-space-size=16', `services/${role}/main.ts`],
      env: this.#envOf(proxy?.url ?? this.redis.url),
      ready: /^\{.*"msg":"listening".*\}$/m,
    })
    const { id, url = '' } = JSON.parse(proc.ready[0]) as { id: string; url?: string }
    const member: Member = { role, name, proc, url: url.replace('//0.0.0.0:', '//127.0.0.1:'), ...(proxy && { proxy }) }
    this.#byEpoch.set(Number(id.slice(id.indexOf('_') + 1)), member)
    if (role === 'gateway') this.gateways.push(member)
    else this.workers.push(member)
    return member
  }

  /** SIGKILL; the member is out of the lists. */
  async kill(member: Member): Promise<void> {
    this.#remove(member)
    await member.proc.kill('SIGKILL')
  }

  /**
   * SIGTERM, and how long it took; SIGKILL when it does not end in time, which the checker sees. Clients choose the member
   * until `noticedAfterMs`, as those of a load balancer do.
   */
  async stop(member: Member, { withinMs, noticedAfterMs }: Stopping): Promise<{ ms: number; code: number | null }> {
    const from = now()
    const noticed = setTimeout(() => this.#remove(member), noticedAfterMs)
    const { code } = await member.proc.stop(withinMs)
    clearTimeout(noticed)
    this.#remove(member)
    return { ms: now() - from, code }
  }

  /** Redis is killed; its memory is lost. `redis.restart()` brings it back. */
  async killRedis(): Promise<void> {
    this.record({ kind: 'killed', t: now(), what: 'redis', signal: 'SIGKILL' })
    await this.redis.kill('SIGKILL')
  }

  /** A client of the world's own, past all proxies. */
  async withRedis<T>(work: (redis: Redis) => Promise<T>): Promise<T> {
    const redis = new Redis(this.redis.url)
    try {
      return await work(redis)
    } finally {
      redis.disconnect()
    }
  }

  /** Processes get new epochs when they were judged dead: whose runs are whose is looked up in Redis. */
  async learnEpochs(): Promise<void> {
    for (const { epoch, pid } of await this.#listed()) {
      const member = [...this.workers, ...this.gateways].find(({ proc }) => proc.pid === pid)
      if (member) this.#byEpoch.set(epoch, member)
    }
  }

  /** Does the cluster count it as one of its own? Not while it is judged dead. */
  async isMember({ proc }: Member): Promise<boolean> {
    return (await this.#listed()).some(({ pid }) => pid === proc.pid)
  }

  /** The worker that has, or had, the run; its id says so. */
  ownerOf(run: string): Member | undefined {
    return this.#byEpoch.get(Number.parseInt(run.slice(4, 12), 16))
  }

  /** Opens a stream through a gateway, in the history from its first byte on. */
  stream(gateway: Member, { path, ...rest }: Omit<StreamRequest, 'url' | 'gateway'>): StreamClient {
    return new StreamClient(
      { url: gateway.url, gateway: gateway.name, path, ...rest },
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

  /** Asks a gateway something that is answered at once. Never throws. */
  ask(gateway: Member, asked: Asked): Promise<Answered> {
    return ask(gateway.url, asked)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#procs[Symbol.asyncDispose]()
    await Promise.all(this.#proxies.map((proxy) => proxy.close()))
    await this.redis.stop()
    process.off('exit', this.#clean)
    this.#clean()
  }

  async #listed(): Promise<{ epoch: number; pid: number }[]> {
    const entries = await this.withRedis((redis) => redis.hgetall('ae:members'))
    return Object.entries(entries).map(([epoch, text]) => {
      const { fields } = JSON.parse(text) as { fields: string }
      return { epoch: Number(epoch), pid: (JSON.parse(fields) as { pid: number }).pid }
    })
  }

  #envOf(redisUrl: string): Record<string, string> {
    return {
      MODEL_PROVIDER: 'demo',
      HOST: '127.0.0.1',
      PORT: '0',
      OPS_PORT: '0',
      RATE_LIMIT_RPM: '0',
      DATA_DIR: this.dataDir,
      NODE_COMPILE_CACHE: resolve('node_modules/.cache/compile'),
      REDIS_URL: redisUrl,
      ...this.#options.env,
    }
  }

  #remove(member: Member): void {
    this.gateways = this.gateways.filter((each) => each !== member)
    this.workers = this.workers.filter((each) => each !== member)
  }

  /** A gateway lists its fellows twice a second: before it has seen all workers, it would favour some. */
  async #knowsWorkers(gateway: Member, workers: number): Promise<void> {
    const deadline = now() + KNOWN_WITHIN_MS
    const seen = new Set<string>()
    while (seen.size < workers && now() < deadline) {
      const stream = this.run(gateway, { prompt: '/say hello' })
      await stream.ended
      const owner = this.ownerOf(stream.run)
      if (owner) seen.add(owner.name)
    }
    if (seen.size < workers) throw new Error(`${gateway.name} knows ${seen.size} of ${workers} workers`)
  }

  readonly #clean = (): void => rmSync(this.dataDir, { recursive: true, force: true })
}

const KNOWN_WITHIN_MS = 10_000
