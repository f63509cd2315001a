import { expect } from 'chai'
import { createRedisPermissionStore } from '../../../shared/broker/permissions/redis-store.ts'
import { openRedisLink, type RedisLink } from '../../../shared/broker/redis-link.ts'
import { DEFAULT_TENANT } from '../../../shared/tenant.ts'
import { newRequest } from '../../contract/pending-permission.ts'
import { permissionListContract } from '../../contract/permission-list.ts'
import { permissionBookContract } from '../../contract/permission-store.ts'
import { useRedis } from '../../support/redis.ts'

describe('permission book in Redis', () => {
  const redis = useRedis()
  const links: RedisLink[] = []
  afterEach(async () => {
    for (const link of links.splice(0)) await link.close()
  })

  const open = async () => {
    const link = await openRedisLink(redis.url)
    links.push(link)
    return createRedisPermissionStore(link, 'ae:bell:test')
  }
  permissionBookContract(open)
  permissionListContract(open)

  it('D4.12: what is over its time is not listed, though its worker died and nobody decided', async () => {
    const book = await open()
    const lapsing = newRequest({}, { waitsMs: 50 })
    const kept = newRequest()
    for (const request of [lapsing, kept]) await book.open(request)
    const idsOf = async () => (await book.list(DEFAULT_TENANT, { limit: 10 })).permissions.map(({ id }) => id)
    while ((await idsOf()).includes(lapsing.id));
    expect(await idsOf()).to.deep.equal([kept.id])
  })

  it('design §7.8: what dead workers leave behind is cleared away, also where nobody ever looks at the list', async () => {
    const book = await open()
    for (let i = 0; i < 50; i++) await book.open(newRequest({}, { waitsMs: 0 }))
    const client = redis.connect()
    expect(await client.zcard(`ae:pending:${DEFAULT_TENANT}`)).to.equal(1)
    expect(await client.hlen(`ae:asks:${DEFAULT_TENANT}`)).to.equal(1)
  })

  it('leaves nothing in Redis once everything is decided and forgotten', async () => {
    const book = await open()
    const requests = [newRequest({ scopeId: 's' }), newRequest({ scopeId: 's' })]
    for (const request of requests) await book.open(request)
    await book.decide(requests[0] ?? newRequest(), { state: 'allowed' })
    await book.forget(DEFAULT_TENANT, 's')
    expect(await redis.connect().keys('*')).to.deep.equal([])
  })
})
