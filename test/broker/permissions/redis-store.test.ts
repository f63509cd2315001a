import { expect } from 'chai'
import { openWorkerPermissionStore } from '../../../shared/broker/permissions/redis-store.ts'
import { openRedisLink, type RedisLink } from '../../../shared/broker/redis-link.ts'
import { DEFAULT_TENANT } from '../../../shared/tenant.ts'
import { newRequest } from '../../contract/pending-permission.ts'
import { permissionListContract } from '../../contract/permission-list.ts'
import { permissionStoreContract } from '../../contract/permission-store.ts'
import { useRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

describe('permission store in Redis', () => {
  const redis = useRedis()
  const links: RedisLink[] = []
  afterEach(async () => {
    for (const link of links.splice(0)) await link.close()
  })

  const open = async () => {
    const link = await openRedisLink(redis.url)
    links.push(link)
    return openWorkerPermissionStore(link, 1)
  }
  permissionStoreContract(open)
  permissionListContract(open)

  it('D4.12: an expired request is not listed, even if its worker crashed before it could decide it', async () => {
    const store = await open()
    const expiring = newRequest({}, { waitsMs: 50 })
    const kept = newRequest()
    for (const request of [expiring, kept]) await store.open(request)
    const idsOf = async () => (await store.list(DEFAULT_TENANT, { limit: 10 })).permissions.map(({ id }) => id)
    await until(async () => !(await idsOf()).includes(expiring.id), { what: 'the expired request to leave the list' })
    expect(await idsOf()).to.deep.equal([kept.id])
  })

  it('requests that crashed workers left are removed by later requests, even if the list is never read', async () => {
    const store = await open()
    for (let i = 0; i < 50; i++) await store.open(newRequest({}, { waitsMs: 0 }))
    const client = redis.connect()
    expect(await client.zcard(`ae:pending:${DEFAULT_TENANT}`)).to.equal(1)
    expect(await client.hlen(`ae:asks:${DEFAULT_TENANT}`)).to.equal(1)
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
