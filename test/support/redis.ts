import { Redis, type RedisOptions } from 'ioredis'
import { type RedisServer, startRedis } from '../../scripts/local-services/redis.ts'

/** ioredis chooses the types of its replies by `replyMapping`: with it in the options' type there is no one constructor to call. */
type ClientOptions = Omit<RedisOptions, 'replyMapping'>

/** A Redis of this test file's own, empty at the start of each test. */
export type TestRedis = {
  readonly url: string
  /** To kill, stop and restart: at the start of the next test it runs and answers again. */
  readonly server: RedisServer
  /** A client to `url`, or to another address such as a proxy's; closed after the test. Its `error` events are heard by nobody. */
  connect(options?: ClientOptions, url?: string): Redis
}

/**
 * Registers the hooks of the enclosing `describe`. Never touches the Redis of REDIS_URL: tests empty theirs. With `keeps` the
 * tests go on with what the ones before them have written.
 */
export function useRedis({ keeps = false }: { keeps?: boolean } = {}): TestRedis {
  let server: RedisServer | undefined
  const clients: Redis[] = []
  const running = () => {
    if (server === undefined) throw new Error('Redis is there from the `before` hook on')
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
