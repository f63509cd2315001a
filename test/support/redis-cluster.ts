import { Redis } from 'ioredis'
import type { RedisServer } from '../../scripts/local-services/redis.ts'
import { type LocalRedisCluster, startRedisCluster } from '../../scripts/local-services/redis-cluster.ts'
import { until } from './until.ts'

/** A Redis Cluster for one test file, empty at the start of each test. */
export type TestRedisCluster = {
  readonly nodes: LocalRedisCluster['nodes']
  readonly servers: LocalRedisCluster['servers']
  /** Sends a command to the node that has the key, or without one to each primary, and returns the answers. */
  send(command: readonly string[], key?: string): Promise<unknown[]>
  /** The server that has the key. */
  primaryOf(key: string): Promise<RedisServer>
  /** Moves the slot of the key, with its keys, to another primary, as `redis-cli --cluster reshard` does. */
  moveSlotOf(key: string): Promise<void>
  /** Resolves when every running node knows a running primary for each slot. */
  whole(): Promise<void>
}

/** Registers hooks in the enclosing `describe` that start and stop the cluster. Tests may kill and restart its servers. */
export function useRedisCluster(options: Parameters<typeof startRedisCluster>[0] = {}): TestRedisCluster {
  let cluster: LocalRedisCluster | undefined
  const running = () => {
    if (cluster === undefined) throw new Error('the cluster runs from the `before` hook on; use it within a test')
    return cluster
  }
  const on = async <T>(url: string, work: (client: Redis) => Promise<T>): Promise<T> => {
    const client = new Redis(url, { maxRetriesPerRequest: 1 }).on('error', () => {})
    try {
      return await work(client)
    } finally {
      client.disconnect()
    }
  }
  const alive = () => running().servers.filter(({ isRunning }) => isRunning)
  const isWhole = async () => {
    const infos = await Promise.all(alive().map(({ url }) => on(url, (client) => client.cluster('INFO'))))
    return infos.every((info) => info.includes('cluster_state:ok'))
  }
  const send: TestRedisCluster['send'] = async (command, key) => {
    const [name = '', ...args] = command
    const answers = alive().map(({ url }) =>
      on(url, async (client) => {
        const isPrimary = (await client.info('replication')).includes('role:master')
        if (!isPrimary) return []
        try {
          return [await client.call(name, ...args)]
        } catch (cause) {
          if (key !== undefined && String(cause).includes('MOVED')) return []
          throw cause
        }
      }),
    )
    return (await Promise.all(answers)).flat(1)
  }
  /** The running primaries, with their ids and slots. */
  async function primaries(): Promise<{ server: RedisServer; id: string; has(slot: number): boolean }[]> {
    const found = alive().map(({ url, port }) =>
      on(url, async (client) => {
        const lines = String(await client.cluster('NODES')).split('\n')
        const [id = '', , flags = '', , , , , , ...ranges] =
          lines.find((line) => line.includes('myself'))?.split(' ') ?? []
        const bounds = ranges.map((range) => range.split('-').map(Number))
        const has = (slot: number) => bounds.some(([first = -1, last = first]) => first <= slot && slot <= last)
        const server = running().servers.find((each) => each.port === port)
        return server && flags.includes('master') ? [{ server, id, has }] : []
      }),
    )
    return (await Promise.all(found)).flat()
  }
  const slotOf = (key: string) => on(alive()[0]?.url ?? '', (client) => client.cluster('KEYSLOT', key))
  async function moveSlotOf(key: string): Promise<void> {
    const [slot, all] = [await slotOf(key), await primaries()]
    const from = all.find(({ has }) => has(slot))
    const to = all.find(({ has }) => !has(slot))
    if (!from || !to) throw new Error(`no primary to move slot ${slot} to`)
    await on(to.server.url, (client) => client.cluster('SETSLOT', slot, 'IMPORTING', from.id))
    await on(from.server.url, async (client) => {
      await client.cluster('SETSLOT', slot, 'MIGRATING', to.id)
      const keys = await client.cluster('GETKEYSINSLOT', slot, 1_000)
      if (keys.length > 0) await client.call('MIGRATE', '127.0.0.1', to.server.port, '', 0, 1_000, 'KEYS', ...keys)
    })
    for (const { server } of [to, from, ...all])
      await on(server.url, (client) => client.cluster('SETSLOT', slot, 'NODE', to.id))
  }
  before(async () => {
    cluster = await startRedisCluster(options)
  })
  beforeEach(async () => {
    for (const server of running().servers) if (!server.isRunning) await server.restart()
    await until(isWhole, { what: 'the Redis Cluster to be whole', withinMs: 30_000 })
    await send(['FLUSHALL'])
  })
  after(async () => cluster?.[Symbol.asyncDispose]())
  return {
    get nodes() {
      return running().nodes
    },
    get servers() {
      return running().servers
    },
    send,
    moveSlotOf,
    async primaryOf(key) {
      const [slot, all] = [await slotOf(key), await primaries()]
      const found = all.find(({ has }) => has(slot))
      if (!found) throw new Error(`no primary has slot ${slot}`)
      return found.server
    },
    whole: async () => void (await until(isWhole, { what: 'the Redis Cluster to be whole', withinMs: 30_000 })),
  }
}
