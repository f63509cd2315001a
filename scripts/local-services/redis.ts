import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RedisNode, Sentinels } from '../../shared/platform/config/redis-place.ts'
import { type Child, spawnChild } from './child.ts'
import { freePort } from './free-port.ts'
import { LocalServer } from './local-server.ts'
import { checkRedis } from './redis-facts.ts'
import { ensureRedisServer, requireRedisServer } from './redis-server.ts'

export type RedisOptions = {
  /** By default a free one. */
  port?: number
  /** The folder for Redis's files, which is kept. By default a temporary folder that is removed when the server stops. */
  dir?: string
  /** Arguments for redis-server, such as `['--appendonly', 'yes']`. They replace the default settings. */
  args?: readonly string[]
}

/** The Redis that the settings name: REDIS_URL, and REDIS_SENTINELS or REDIS_CLUSTER, which know the host better. */
export type RedisPlace = {
  url: string | undefined
  sentinels?: Sentinels | undefined
  cluster?: readonly RedisNode[] | undefined
}

/**
 * Opens the Redis of a cluster (D1.2): the one that the settings name, or without any a private server, which is installed where possible.
 * `url` is its present address. `server` is the private one, which the caller must stop.
 */
export async function openRedis(
  { url, sentinels, cluster }: RedisPlace,
  say: (line: string) => void,
): Promise<{ url: string; server?: RedisServer }> {
  const [node] = cluster ?? []
  if (node) {
    const address = withHost(url, `${node.host}:${node.port}`)
    const { version, maxmemoryPolicy } = await checkRedis(address)
    say(`Using the Redis Cluster of REDIS_CLUSTER (Redis ${version}, maxmemory-policy ${maxmemoryPolicy}).`)
    return { url: address }
  }
  if (sentinels) {
    const { version, maxmemoryPolicy, host } = await checkRedis(url ?? 'redis://', { sentinels })
    say(`Using the Redis ${version} that the sentinels name, now at ${host} (maxmemory-policy ${maxmemoryPolicy}).`)
    return { url: withHost(url, host) }
  }
  if (url) {
    const { version, maxmemoryPolicy } = await checkRedis(url)
    say(`Using the Redis ${version} of REDIS_URL (maxmemory-policy ${maxmemoryPolicy}).`)
    return { url }
  }
  const version = await ensureRedisServer(say)
  const server = await startRedis()
  say(`Started Redis ${version} at ${server.url} (pid ${server.pid}).`)
  return { url: server.url, server }
}

/** The address with user, password, database and TLS of `url`. */
function withHost(url: string | undefined, host: string): string {
  const address = new URL(url ?? 'redis://any')
  address.host = host
  return address.href
}

const STARTS = 3

/**
 * Starts a private redis-server on a loopback port, without persistence and with `noeviction`, and waits until it answers.
 * It ends with this process, also when this process is killed.
 */
export async function startRedis({ port, dir, args = [] }: RedisOptions = {}): Promise<RedisServer> {
  await requireRedisServer()
  const ownDir = dir === undefined ? await mkdtemp(join(tmpdir(), 'agent-engine-redis-')) : undefined
  for (let left = STARTS; ; left--) {
    const home: Home = { port: port ?? (await freePort()), dir: dir ?? ownDir ?? tmpdir(), ownDir, args }
    try {
      return new RedisServer(home, await launch(home))
    } catch (cause) {
      // Another process may have taken the port in the meantime.
      if (port === undefined && left > 1) continue
      if (ownDir !== undefined) await rm(ownDir, { recursive: true, force: true })
      throw cause
    }
  }
}

type Home = { port: number; dir: string; ownDir: string | undefined; args: readonly string[] }

const STOP_WITHIN_MS = 2000

/** A private redis-server. It loses its data at a restart unless its `args` enable persistence. */
export class RedisServer extends LocalServer implements AsyncDisposable {
  readonly port: number
  readonly url: string
  readonly #home: Home

  constructor(home: Home, child: Child) {
    super(child, () => launch(home))
    this.port = home.port
    this.url = urlOf(home)
    this.#home = home
  }

  async stop(): Promise<void> {
    await this.end(STOP_WITHIN_MS)
    if (this.#home.ownDir !== undefined) await rm(this.#home.ownDir, { recursive: true, force: true })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }
}

const urlOf = ({ port }: Home) => `redis://127.0.0.1:${port}`

async function launch(home: Home): Promise<Child> {
  const child = await spawnChild({
    name: 'redis-server',
    command: 'redis-server',
    args: [...settings(home), ...home.args],
    ...(home.ownDir !== undefined && { ownDir: home.ownDir }),
  })
  try {
    await waitForAnswer(child, urlOf(home))
    return child
  } catch (cause) {
    await child.kill('SIGKILL')
    throw cause
  }
}

function settings({ port, dir }: Home): string[] {
  const set = {
    port: String(port),
    bind: '127.0.0.1',
    dir,
    save: '',
    appendonly: 'no',
    'maxmemory-policy': 'noeviction',
  }
  return Object.entries(set).flatMap(([name, value]) => [`--${name}`, value])
}

const START_WITHIN_MS = 60_000
const RETRY_EVERY_MS = 10

/** Connects until the child itself answers: another server may occupy the port. */
async function waitForAnswer(child: Child, url: string): Promise<void> {
  const deadline = performance.now() + START_WITHIN_MS
  while (child.isRunning && performance.now() < deadline) {
    const facts = await checkRedis(url).catch(() => undefined)
    if (facts?.pid === child.pid) return
    await sleep(RETRY_EVERY_MS)
  }
  throw child.failure(child.isRunning ? `did not answer at ${url}` : `ended before it answered at ${url}`)
}
