import { Redis, type RedisOptions } from 'ioredis'
import { type RedisServer, startRedis } from '../../scripts/local-services/redis.ts'

/** Without `replyMapping`, by which ioredis selects the types of its replies: with it no single constructor signature matches. */
type ClientOptions = Omit<RedisOptions, 'replyMapping'>

/** A Redis server for one test file, empty at the start of each test. */
export type TestRedis = {
  readonly url: string
  /** Tests may kill, suspend and restart it: it is running again at the start of the next test. */
  readonly server: RedisServer
  /** Connects to `url`, or to another address such as a proxy's. The client is closed after the test, and its errors are ignored. */
  connect(options?: ClientOptions, url?: string): Redis
}

/**
 * Registers hooks in the enclosing `describe` that start and stop the server. Tests never use the Redis of REDIS_URL, since they
 * delete all keys. With `keeps`, the keys of earlier tests stay.
 */
export function useRedis({ keeps = false }: { keeps?: boolean } = {}): TestRedis {
  let server: RedisServer | undefined
  const clients: Redis[] = []
  const running = () => {
    if (server === undefined) throw new Error('Redis runs from the `before` hook on; use it within a test')
    return server
  }
  const connect = (options: ClientOptions = {}, url = running().url) => {
    const client = new Redis(url, options)
    client.on('error', () => {})
    clients.push(client)
    return client
  }
  before(async () => {
    server = await startRedis()
  })
  if (!keeps) beforeEach(() => empty(running()))
  afterEach(() => {
    for (const client of clients.splice(0)) client.disconnect()
  })
  after(async () => server?.stop())
  return {
    connect,
    get url() {
      return running().url
    },
    get server() {
      return running()
    },
  }
}

async function empty(server: RedisServer): Promise<void> {
  if (server.isRunning) await server.kill('SIGCONT')
  else await server.restart()
  const client = new Redis(server.url)
  try {
    await client.flushall()
  } finally {
    client.disconnect()
  }
}
