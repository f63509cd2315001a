import { expect } from 'chai'
import { createRedisMembers } from '../../../shared/cluster/members/redis-members.ts'
import { openWorkerPermissionStore } from '../../../shared/cluster/permissions/redis-store.ts'
import {
  packMessage,
  RECORD,
  type ReceivedRecord,
  readMessage,
  record,
} from '../../../shared/cluster/relay/wire/records.ts'
import { type CounterName, NO_METRICS } from '../../../shared/kernel/metrics.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { openRedisLink } from '../../../shared/platform/redis/link.ts'
import { RedisRateLimiter } from '../../../shared/tenancy/rate/redis.ts'
import { createBullQueue } from '../../../shared/work/queue/bullmq.ts'
import { createBullConsume } from '../../../shared/work/queue/bullmq-consume.ts'
import { newRequest } from '../../contract/pending-permission.ts'
import { useRedis } from '../../support/redis.ts'
import { createTestRelay, type Gateway } from '../../support/relay.ts'
import { until } from '../../support/until.ts'

const TENANT = DEFAULT_TENANT

async function textOfRun({ broker }: Gateway): Promise<string> {
  const { frames } = await broker.startRun(TENANT, { prompt: '/say hi' })
  let text = ''
  for await (const chunk of frames) text += Buffer.from(chunk.text)
  return text
}

/** Counts what a process counts. */
function counting() {
  const counts = new Map<CounterName, number>()
  const count = (name: CounterName, by = 1) => void counts.set(name, (counts.get(name) ?? 0) + by)
  return { counts, metrics: { ...NO_METRICS, count } }
}

describe('several clusters on one Redis', () => {
  const redis = useRedis()
  const [one, other] = [
    createTestRelay(() => redis.url, { clusterName: 'one' }),
    createTestRelay(() => redis.url, { clusterName: 'other' }),
  ]
  afterEach(() => Promise.all([one.close(), other.close()]))

  it('D1.3 CLUSTER_NAME: two clusters do not know each other, even when their processes have the same epochs', async () => {
    await one.gateway()
    const gateway = await other.gateway()
    const last = String(gateway.epoch + 100)
    for (const name of ['one', 'other']) await redis.connect().set(`${name}:{members}:epoch`, last)
    const [worker, twin] = [await one.worker(), await other.worker()]
    expect(twin.epoch).to.equal(worker.epoch)
    expect(await textOfRun(gateway)).to.include('event: done')
    expect(twin.worker.inbox.listRuns(TENANT, { limit: 9 }).runs).to.have.length(1)
    expect(worker.worker.inbox.listRuns(TENANT, { limit: 9 }).runs).to.deep.equal([])
  })

  it('D1.3 CLUSTER_NAME: every key and channel of a cluster begins with its name', async () => {
    await one.worker()
    const gateway = await one.gateway()
    await gateway.broker.createSession(TENANT)
    const link = await openRedisLink(redis.url, { clusterName: 'one' })
    const permissions = await openWorkerPermissionStore(link, 1)
    await permissions.open(newRequest())
    const queue = createBullQueue(redis.url, { clusterName: 'one' })
    for (const kind of ['flow', 'plan', 'schedule'] as const) await queue.add({ kind, tenant: TENANT, id: 'x' })
    const fallback = { take: () => Promise.reject(new Error('not asked')) }
    const log = { error() {}, warn() {}, info() {}, debug() {} }
    await new RedisRateLimiter({ run: link.run, perMinute: 1, fallback, log }).take('client')
    const client = redis.connect()
    const names = [...(await client.keys('*')), ...((await client.pubsub('CHANNELS')) as string[])]
    await Promise.all([link.close(), queue.close()])
    expect(names.filter((name) => !name.startsWith('one:'))).to.deep.equal([])
    expect(names).to.include.members(['one:{members}', 'one:started', 'one:{plan}:plan:meta', 'one:rate:client'])
  })

  it('D1.3 CLUSTER_NAME: a job of one cluster is not taken by the other', async () => {
    const taken: string[] = []
    const open = async (name: string) => {
      const consume = createBullConsume({ url: redis.url, redis: { clusterName: name }, onProblem: () => {} })
      const handler = async () => void taken.push(name)
      return consume('flow', handler, { concurrency: 1, onGivenUp: async () => {} })
    }
    const consumers = [await open('one'), await open('other')]
    const queue = createBullQueue(redis.url, { clusterName: 'other' })
    await queue.add({ kind: 'flow', tenant: TENANT, id: 'trace_1' })
    await until(() => taken.length > 0, { what: 'the job to be taken' })
    await Promise.all([queue.close(), ...consumers.map((consumer) => consumer.close())])
    expect(taken).to.deep.equal(['other'])
  })
})

describe('messages that a process cannot read', () => {
  const redis = useRedis()
  const relay = createTestRelay(() => redis.url)
  afterEach(() => relay.close())

  it('a malformed or foreign message on any channel is dropped and counted, and the process works on', async () => {
    const [atGateway, atWorker] = [counting(), counting()]
    const worker = await relay.worker({ relay: { metrics: atWorker.metrics } })
    const gateway = await relay.gateway({ metrics: atGateway.metrics })
    const client = redis.connect()
    const junk = [
      Buffer.from('x'),
      Buffer.alloc(0),
      Buffer.from('{"method":"startRun"}'),
      packMessage(7, 0, [record(RECORD.frames, { body: 'hello' })]).subarray(0, 30),
      Buffer.from([1, ...packMessage(7, 0, []).subarray(1)]),
      packMessage(7, 0, [record(RECORD.call, { stream: 1, body: 'no json' })]),
      packMessage(7, 0, [record(RECORD.call, { stream: 1, body: '{"method":1}' })]),
    ]
    for (const message of junk) {
      await client.publish(`ae:gw:${gateway.epoch}`, message)
      await client.publish(`ae:wk:${worker.epoch}`, message)
      for (const channel of ['started', 'config', 'members']) await client.publish(`ae:${channel}`, message)
    }
    const dropped = () => [atWorker, atGateway].map(({ counts }) => counts.get('messages_dropped') ?? 0)
    await until(() => dropped().every((count) => count >= 5), { what: 'the messages to be dropped', lastSeen: dropped })
    expect(await textOfRun(gateway)).to.include('event: done')
    expect(dropped()).to.deep.equal([7, 5])
  })

  it('an older gateway works with a newer worker: it skips the fields, records and versions that it does not know', async () => {
    const gateway = await relay.gateway()
    const link = await openRedisLink(redis.url)
    const newer = { role: 'worker', state: 'active', load: 0, pid: 1, protocol: { min: 2, max: 3 }, zone: 'a' } as const
    const epoch = await createRedisMembers(link).join(newer)
    await link.subscribe(`wk:${epoch}`, (message) => {
      const calls: ReceivedRecord[] = []
      const { epoch: from } = readMessage(message, (each) => each.type === RECORD.call && calls.push(each))
      for (const { stream: id, body: call } of calls) {
        const { args } = JSON.parse(call.toString()) as { args: unknown[] }
        const unknown = { ...record(RECORD.frames, { stream: Number(args.at(-1)), body: 'x' }), type: 77 as 0 }
        const reply = record(RECORD.reply, { stream: id, body: '{"value":null,"took_ms":3}' })
        const body = 'id: 1\nevent: done\ndata: {}\n\n'
        const frames = record(RECORD.frames, { stream: Number(args.at(-1)), seq: 1, count: 1, flags: 1, body })
        void link.publish(`gw:${from}`, packMessage(epoch, 0, [unknown, reply, frames]))
      }
    })
    expect(await textOfRun(gateway)).to.include('event: done')
    await link.close()
  })

  it('records of members that this release cannot understand are skipped, and their processes are not called', async () => {
    const { epoch } = await relay.worker()
    const link = await openRedisLink(redis.url)
    const client = redis.connect()
    const fields = { role: 'worker', state: 'active', load: -9, pid: 1 }
    const records = [
      'no json',
      '[]',
      'nonce 7',
      ...[
        { ...fields, protocol: { min: 3, max: 4 } },
        { ...fields, role: 'archiver', protocol: { min: 2, max: 2 } },
        { ...fields, state: 'asleep', protocol: { min: 2, max: 2 } },
      ].map((each) => `nonce ${JSON.stringify(each)}`),
    ]
    for (const [i, text] of records.entries()) await client.hset('ae:{members}', String(epoch + 1 + i), text)
    expect((await createRedisMembers(link).list()).members.map((member) => member.epoch)).to.deep.equal([epoch])
    expect(await textOfRun(await relay.gateway())).to.include('event: done')
    await link.close()
  })
})
