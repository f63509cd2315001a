// Tests redis-store.ts and redis-scripts.ts: the scripts run in a real Redis.

import { expect } from 'chai'
import { openWorkerPermissionStore } from '../../../shared/cluster/permissions/redis-store.ts'
import { reply } from '../../../shared/cluster/permissions/reply.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { openRedisLink, type RedisLink } from '../../../shared/platform/redis/link.ts'
import { newRequest } from '../../contract/pending-permission.ts'
import { permissionListContract } from '../../contract/permission-list.ts'
import { permissionStoreContract } from '../../contract/permission-store.ts'
import { elapsedMs } from '../../support/elapsed.ts'
import { useRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length

describe('permission store in Redis', () => {
  const redis = useRedis()
  const links: RedisLink[] = []
  afterEach(async () => {
    for (const link of links.splice(0)) await link.close()
  })

  const openLink = async () => {
    const link = await openRedisLink(redis.url)
    links.push(link)
    return link
  }
  const open = async () => openWorkerPermissionStore(await openLink(), 1)
  permissionStoreContract(open)
  permissionListContract(open)

  it('requests that crashed workers left are removed by later requests, even if the list is never read', async () => {
    const store = await open()
    for (let i = 0; i < 50; i++) await store.open(newRequest({}, { waitsMs: 0 }))
    const client = redis.connect()
    expect(await client.zcard(`ae:pending:{${DEFAULT_TENANT}}`)).to.equal(1)
    expect(await client.hlen(`ae:asks:{${DEFAULT_TENANT}}`)).to.equal(1)
  })

  it('a decision is announced: the worker does not wait for its next poll', async () => {
    const [worker, other] = [await open(), await open()]
    const since = elapsedMs()
    for (let i = 0; i < 5; i++) {
      const request = newRequest()
      await worker.open(request)
      const decision = worker.decision(request)
      await other.decide(request, { state: 'allowed' })
      expect(await decision).to.deep.equal({ state: 'allowed' })
    }
    expect(elapsedMs() - since).to.be.lessThan(1_500) // Polls alone would take 2.5 s.
  })

  it('a decision whose announcement is lost is found by the next poll', async () => {
    const worker = await open()
    const request = newRequest()
    await worker.open(request)
    const decision = worker.decision(request)
    const channels = (await redis.connect().pubsub('CHANNELS', 'ae:bell:*')) as string[]
    for (const channel of channels) await links.at(-1)?.unsubscribe(channel.slice('ae:'.length))
    await (await open()).decide(request, { state: 'denied', reason: 'no' })
    expect(await decision).to.deep.equal({ state: 'denied', reason: 'no' })
  })

  it('api.md Permission request: a reply whose command reaches Redis twice is 200 when it decided, 409 when it did not, and 404 after the deadline', async () => {
    const link = await openLink()
    const { run } = link
    link.run = async (...args) => {
      await run(...args) // ioredis sends a command again when it loses the connection before the answer.
      return run(...args)
    }
    const store = await openWorkerPermissionStore(link, 1)
    const request = newRequest()
    await store.open(request)
    await reply(store, request, { allow: true })
    expect(await store.decision(request)).to.deep.equal({ state: 'allowed' })
    const again = await reply(store, request, { allow: true }).catch((cause: unknown) => cause)
    expect(again).to.include({ kind: 'conflict' })
    const overdue = newRequest({}, { waitsMs: 0 })
    await store.open(overdue)
    const late = await reply(store, overdue, { allow: true }).catch((cause: unknown) => cause)
    expect(late).to.include({ kind: 'not_found' })
  })

  it('a request whose opening reaches Redis again after its decision stays decided', async () => {
    const store = await open()
    const request = newRequest()
    await store.open(request)
    await reply(store, request, { allow: true })
    await store.open(request)
    expect(await store.decision(request)).to.deep.equal({ state: 'allowed' })
    expect((await store.list(DEFAULT_TENANT, { limit: 10 })).permissions).to.deep.equal([])
  })

  it('a request that is forgotten is withdrawn at once: the worker does not wait for its next poll', async () => {
    const worker = await open()
    const since = elapsedMs()
    for (let i = 0; i < 5; i++) {
      const request = newRequest()
      await worker.open(request)
      const decision = worker.decision(request)
      await worker.forget(DEFAULT_TENANT, request.scopeId)
      expect(await decision).to.deep.equal({ state: 'withdrawn' })
    }
    expect(elapsedMs() - since).to.be.lessThan(1_500)
  })

  it('a worker reads all its pending requests of a tenant with one command, and finds each decision whose announcement was lost', async () => {
    const link = await openRedisLink(redis.url)
    links.push(link)
    const commands: string[] = []
    const counting: RedisLink = {
      ...link,
      run(script, ...rest) {
        commands.push(script.name)
        return link.run(script, ...rest)
      },
      subscribe: async () => {}, // It hears of no decision.
    }
    const worker = await openWorkerPermissionStore(counting, 1)
    const requests = Array.from({ length: 40 }, () => newRequest())
    for (const request of requests) await worker.open(request)
    const decisions = requests.map((request) => worker.decision(request))
    await until(() => commands.filter((name) => name === 'aeDecision').length === 40, { what: 'the first reads' })
    commands.length = 0
    await until(() => commands.length >= 2, { what: 'two polls' })
    expect(commands).to.deep.equal(['aeUndecided', 'aeUndecided'])
    const other = await open()
    for (const request of requests.slice(0, 2)) await other.decide(request, { state: 'allowed' })
    expect(await Promise.all(decisions.slice(0, 2))).to.deep.equal([{ state: 'allowed' }, { state: 'allowed' }])
    expect(commands.filter((name) => name === 'aeDecision')).to.have.length(2)
    for (const request of requests.slice(2)) await other.decide(request, { state: 'withdrawn' })
    await Promise.all(decisions)
  })

  it('a decided request leaves no timer', async () => {
    const store = await open()
    const request = newRequest()
    await store.open(request)
    const before = timers()
    const decision = store.decision(request)
    await store.decide(request, { state: 'allowed' })
    await decision
    expect(timers()).to.equal(before)
  })

  it('keys of requests that are never forgotten expire a day after the requests', async () => {
    const store = await open()
    await store.open(newRequest({ scopeId: 's' }, { waitsMs: 100_000 }))
    const client = redis.connect()
    for (const key of await client.keys('*')) expect(await client.ttl(key), key).to.be.within(86_400, 86_500)
    expect(await client.keys('*')).to.have.length(3)
  })

  it('leaves no key in Redis when all requests are decided and forgotten', async () => {
    const store = await open()
    const requests = [newRequest({ scopeId: 's' }), newRequest({ scopeId: 's' })]
    for (const request of requests) await store.open(request)
    await store.decide(requests[0] ?? newRequest(), { state: 'allowed' })
    await store.forget(DEFAULT_TENANT, 's')
    expect(await redis.connect().keys('*')).to.deep.equal([])
  })
})
