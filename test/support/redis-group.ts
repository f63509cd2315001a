import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { type Child, spawnChild } from '../../scripts/local-services/child.ts'
import { freePort } from '../../scripts/local-services/free-port.ts'
import { type RedisServer, startRedis } from '../../scripts/local-services/redis.ts'
import { makeTempFolder } from './temp-folder.ts'
import { until } from './until.ts'

/** A Redis primary with a replica, and an address that leads to one of them. */
export type RedisGroup = {
  primary: RedisServer
  replica: RedisServer
  /** Leads new connections to the primary, until `leadToReplica` or `failOver`. */
  url: string
  leadToReplica(): void
  /** Resolves when the replica has everything that the primary has now. */
  synchronized(): Promise<void>
  /** From now on the replica receives nothing. */
  lag(): Promise<void>
  /** Makes the replica a primary. */
  promote(): Promise<void>
  /** Makes the old primary a replica of the new one. */
  demote(): Promise<void>
  /** Kills the primary and puts the replica in its place. */
  failOver(): Promise<void>
  stop(): Promise<void>
}

/** By default a primary waits 5 s for more replicas before it sends its data. */
const SYNC_AT_ONCE = ['--repl-diskless-sync-delay', '0']

export async function startRedisGroup(): Promise<RedisGroup> {
  const [primary, replica] = await Promise.all([startRedis({ args: SYNC_AT_ONCE }), startRedis()])
  const [atPrimary, atReplica] = [clientOf(primary), clientOf(replica)]
  await atReplica.replicaof('127.0.0.1', primary.port)
  const isLinked = async () => (await atReplica.info('replication')).includes('master_link_status:up')
  await until(isLinked, { what: 'the replica to be linked', withinMs: 20_000 })
  const address = await openAddress(primary.port)
  const promote = async () => void (await atReplica.call('REPLICAOF', 'NO', 'ONE'))
  const leadToReplica = () => address.leadTo(replica.port)
  return {
    primary,
    replica,
    url: address.url,
    leadToReplica,
    async synchronized() {
      await atPrimary.set('written', Date.now())
      await atPrimary.wait(1, 5_000)
    },
    async lag() {
      await atReplica.replicaof('127.0.0.1', 1) // Nothing listens there.
    },
    promote,
    async demote() {
      await atPrimary.replicaof('127.0.0.1', replica.port)
    },
    async failOver() {
      await primary.kill('SIGKILL')
      await promote()
      leadToReplica()
    },
    async stop() {
      for (const client of [atPrimary, atReplica]) client.disconnect()
      address.close()
      await Promise.all([primary.stop(), replica.stop()])
    },
  }
}

function clientOf({ url }: RedisServer): Redis {
  const client = new Redis(url)
  client.on('error', () => {})
  return client
}

/** An address that leads new connections to a port, which can change. */
async function openAddress(first: number) {
  let port = first
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const target = connect(port, '127.0.0.1')
    for (const socket of [client, target]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.once('close', () => (socket === client ? target : client).destroy())
    }
    client.pipe(target).pipe(client)
  })
  const own = await freePort()
  await once(server.listen(own, '127.0.0.1'), 'listening')
  return {
    url: `redis://127.0.0.1:${own}`,
    leadTo(next: number) {
      port = next
    },
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

export const PRIMARY_NAME = 'main'

/** Starts a sentinel that watches the primary under `PRIMARY_NAME` and promotes its replica half a second after its death. */
export async function startSentinel(primary: RedisServer): Promise<{ port: number; stop(): Promise<void> }> {
  const folder = await makeTempFolder()
  const port = await freePort()
  const settings = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${folder.path}`,
    `sentinel monitor ${PRIMARY_NAME} 127.0.0.1 ${primary.port} 1`,
    `sentinel down-after-milliseconds ${PRIMARY_NAME} 500`,
    `sentinel failover-timeout ${PRIMARY_NAME} 5000`,
  ]
  const file = join(folder.path, 'sentinel.conf')
  await writeFile(file, `${settings.join('\n')}\n`)
  const child: Child = await spawnChild({ name: 'sentinel', command: 'redis-server', args: [file, '--sentinel'] })
  await untilReplicaIsKnown(port)
  return {
    port,
    async stop() {
      await child.stop(2_000)
      await folder[Symbol.asyncDispose]()
    },
  }
}

async function untilReplicaIsKnown(port: number): Promise<void> {
  const client = new Redis({ port, host: '127.0.0.1' })
  client.on('error', () => {})
  try {
    const replicas = async () => ((await client.call('SENTINEL', 'REPLICAS', PRIMARY_NAME)) as unknown[]).length
    await until(replicas, { what: 'the sentinel to know the replica', withinMs: 20_000 })
  } finally {
    client.disconnect()
  }
}
