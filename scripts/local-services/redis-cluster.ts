import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { type RedisServer, startRedis } from './redis.ts'

/** The slots of every Redis Cluster. */
const SLOTS = 16_384
const READY_WITHIN_MS = 30_000
const LOOK_EVERY_MS = 50
/** A node that does not answer for this long is replaced by its replica, if it has one. */
const NODE_TIMEOUT_MS = 2_000

export type LocalRedisCluster = AsyncDisposable & {
  /** The value of REDIS_CLUSTER: all nodes. */
  nodes: readonly { host: string; port: number }[]
  /** The first of them have the slots, in equal parts. */
  servers: readonly RedisServer[]
  /** Resolves when every node knows where each slot is, which a node that has died and is started again learns from the others. */
  ready(): Promise<void>
}

/** Starts a Redis Cluster on loopback ports, with as many replicas as primaries if it has any. Resolves when every node knows where each slot is. */
export async function startRedisCluster({ primaries = 3, hasReplicas = false } = {}): Promise<LocalRedisCluster> {
  await using started = new AsyncDisposableStack()
  const count = primaries * (hasReplicas ? 2 : 1)
  const args = [
    '--cluster-enabled',
    'yes',
    '--cluster-node-timeout',
    String(NODE_TIMEOUT_MS),
    '--repl-diskless-sync-delay',
    '0',
    '--cluster-announce-ip', // A node that has met no other does not know its own address.
    '127.0.0.1',
  ]
  const servers = await Promise.all(Array.from({ length: count }, () => startRedis({ args })))
  for (const server of servers) started.use(server)
  await withEach(servers, (clients) => form(clients, { servers, primaries }))
  const nodes = servers.map(({ port }) => ({ host: '127.0.0.1', port }))
  const all = started.move()
  const ready = () => withEach(servers, whole)
  return { nodes, servers, ready, [Symbol.asyncDispose]: () => all.disposeAsync() }
}

async function withEach(servers: readonly RedisServer[], work: (clients: readonly Redis[]) => Promise<void>) {
  const clients = servers.map(({ url }) => new Redis(url))
  try {
    await work(clients)
  } finally {
    for (const client of clients) client.disconnect()
  }
}

const ofCluster = (client: Redis) => client.cluster('INFO')
const whole = (clients: readonly Redis[]) => untilAll(clients, ofCluster, (info) => info['cluster_state'] === 'ok')

type Forming = { servers: readonly RedisServer[]; primaries: number }

async function form(clients: readonly Redis[], { servers, primaries }: Forming): Promise<void> {
  const others = servers.slice(1)
  const part = Math.ceil(SLOTS / primaries)
  await Promise.all(
    clients
      .slice(0, primaries)
      .map((client, i) => client.cluster('ADDSLOTSRANGE', i * part, Math.min((i + 1) * part, SLOTS) - 1)),
  )
  for (const [i, client] of clients.entries()) await client.call('CLUSTER', 'SET-CONFIG-EPOCH', String(i + 1))
  for (const { port } of others) await clients[0]?.cluster('MEET', '127.0.0.1', port)
  await untilAll(clients, ofCluster, (info) => info['cluster_known_nodes'] === String(servers.length))
  const ids = await Promise.all(clients.map((client) => client.cluster('MYID')))
  const replicas = clients.slice(primaries)
  for (const [i, client] of replicas.entries()) await client.cluster('REPLICATE', String(ids[i % primaries]))
  await whole(clients)
  // A replica that has not been in step yet replaces nobody.
  await untilAll(
    replicas,
    (client) => client.info('replication'),
    (info) => info['master_link_status'] === 'up',
  )
}

async function untilAll(
  clients: readonly Redis[],
  read: (client: Redis) => Promise<unknown>,
  isReady: (info: Record<string, string>) => boolean,
): Promise<void> {
  const deadline = performance.now() + READY_WITHIN_MS
  for (;;) {
    const infos = await Promise.all(clients.map(async (client) => factsIn(String(await read(client)))))
    if (infos.every(isReady)) return
    if (performance.now() > deadline) throw new Error(`the Redis Cluster was not ready within ${READY_WITHIN_MS} ms`)
    await sleep(LOOK_EVERY_MS)
  }
}

/** Reads lines of `name:value`. */
const factsIn = (text: string): Record<string, string> =>
  Object.fromEntries(text.split(/\r?\n/).map((line) => line.split(':', 2)))
