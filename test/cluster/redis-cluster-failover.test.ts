import { expect } from 'chai'
import type { RedisServer } from '../../scripts/local-services/redis.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import { paced } from '../chaos/prompts.ts'
import { eventsOf, idsOf, statusOf, textOf } from '../support/broker-answers.ts'
import { useRedisCluster } from '../support/redis-cluster.ts'
import { createTestRelay } from '../support/relay.ts'
import { until } from '../support/until.ts'

const TENANT = DEFAULT_TENANT
/** 9 s: a failover takes about four, of which two are the node's timeout. */
const PROMPT = paced({ count: 90, everyMs: 100 })
const [STREAMS, SESSIONS] = [30, 10]

describe('a Redis Cluster whose nodes change (D33)', function () {
  this.timeout(120_000)
  const redis = useRedisCluster({ hasReplicas: true })
  const options = {
    get cluster() {
      return redis.nodes
    },
  }
  const relay = createTestRelay(() => 'redis://unused', options)
  afterEach(() => relay.close())

  type Process = { epoch: number }
  const channelOf = ({ epoch }: Process) => `wk:${epoch}`
  /** The node of a worker's channel that is not the node of the members. */
  async function elsewhere(workers: readonly Process[]): Promise<RedisServer | undefined> {
    const ofMembers = await redis.primaryOf('ae:{members}')
    const nodes = await Promise.all(workers.map((worker) => redis.primaryOf(`ae:${channelOf(worker)}`)))
    return nodes.find((node) => node !== ofMembers)
  }

  /** Streams that have begun, and sessions. `end` checks that all of them are whole and served, after `act` has changed the nodes. */
  async function whole(act: (workers: readonly Process[]) => Promise<void>): Promise<void> {
    const workers = [await relay.worker(), await relay.worker()]
    while ((await elsewhere(workers)) === undefined) workers.push(await relay.worker())
    const { broker } = await relay.gateway()
    const ids = await Promise.all(
      Array.from({ length: SESSIONS }, async () => (await broker.createSession(TENANT)).session_id),
    )
    const started = await Promise.all(
      Array.from({ length: STREAMS }, () => broker.startRun(TENANT, { prompt: PROMPT })),
    )
    const readings = started.map(({ frames }) => textOf(frames))
    await act(workers)
    for (const text of await Promise.all(readings)) {
      expect(eventsOf(text).at(-1), text.slice(-300)).to.equal('done')
      expect(idsOf(text)).to.deep.equal(idsOf(text).map((_, i) => i + 1))
    }
    const statuses = () => Promise.all(ids.map((id) => statusOf(broker.getSession(TENANT, id))))
    const areServed = async () => (await statuses()).every((status) => status === 200)
    await until(areServed, { what: 'all sessions to be served' })
    expect(workers.flatMap(({ worker }) => [...worker.sessions()])).to.have.length(SESSIONS)
  }

  it('a node that fails is replaced by its replica: every stream goes on without a gap, and every session is served', async () => {
    await whole(async () => (await redis.primaryOf('ae:{members}')).kill('SIGKILL'))
  })

  it('the node of a worker’s channel may fail alone: the worker stays a member, although it hears nothing for so long', async () => {
    await whole(async (workers) => (await elsewhere(workers))?.kill('SIGKILL'))
  })

  it('a slot that moves to another node takes its keys and its channel with it', async () => {
    await whole(async (workers) => {
      for (const key of ['{members}', ...workers.map(channelOf)]) await redis.moveSlotOf(`ae:${key}`)
    })
  })
})
