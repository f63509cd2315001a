import { expect } from 'chai'
import { Child } from '../support/child.ts'
import { useMongo } from '../support/mongo.ts'
import { useRedis } from '../support/redis.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'

const MAIN = new URL('../../services/executor/main.ts', import.meta.url).pathname

describe('the executor process', () => {
  const redis = useRedis()
  const mongo = useMongo()
  const dataDir = useTempFolder()
  const children: Child[] = []
  afterEach(async () => {
    for (const child of children.splice(0)) if (child.process.exitCode === null) await child.end('SIGKILL')
  })

  function start(env: Record<string, string>): Child {
    const places = { HOST: '127.0.0.1', OPS_PORT: '0', DATA_DIR: dataDir.path, REDIS_URL: redis.url, DRAIN_SECS: '5' }
    const child = new Child(process.execPath, [MAIN], { ...places, ...env })
    children.push(child)
    return child
  }

  it('D1.3: without MONGODB_URL it stops with 78 and says so', async () => {
    const child = start({})
    expect(await child.exited).to.equal(78)
    expect(child.lines.join('\n')).to.include('MONGODB_URL')
  })

  it('D1.3: is ready as a member of the cluster that takes flows, not while Redis is away, and leaves it within DRAIN_SECS after SIGTERM', async () => {
    const child = start({ MONGODB_URL: mongo.url, MONGODB_DB: mongo.newDatabase() })
    const ready = JSON.parse(await child.line(/"listening"/)) as { role: string; id: string; ops_url: string }
    expect(ready).to.include({ role: 'executor' })
    const isReady = (status: number) => async () => (await fetch(`${ready.ops_url}/readyz`)).status === status
    await until(isReady(200), { what: 'the executor to be ready' })
    const client = redis.connect()
    const epoch = ready.id.slice('ex_'.length)
    expect(await client.hget('ae:{members}', epoch))
      .to.include('executor')
      .and.include('active')
    expect(await client.pubsub('CHANNELS', 'ae:ex:*')).to.deep.equal([`ae:ex:${epoch}`])
    expect(await (await fetch(`${ready.ops_url}/metrics`)).text()).to.include('agent_engine_runs{')
    await redis.server.kill('SIGKILL')
    await until(isReady(503), { what: 'the executor not to be ready' })
    await redis.server.restart()
    await until(isReady(200), { what: 'the executor to be ready again' })
    const members = () => redis.connect().hlen('ae:{members}')
    await until(async () => (await members()) === 1, { what: 'the executor to be a member again' })
    expect(await child.end()).to.equal(0)
    expect(await members()).to.equal(0)
  })
})
