import { expect } from 'chai'
import { createRedisConfigBell } from '../../services/wiring/config-notice.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import { openRedisLink, type RedisLink } from '../../shared/platform/redis/link.ts'
import { useRedis } from '../support/redis.ts'

describe('the bell of the configuration, over Redis', () => {
  const redis = useRedis()
  const links: RedisLink[] = []
  const open = async () => {
    const link = await openRedisLink(redis.url)
    links.push(link)
    return createRedisConfigBell(link)
  }
  afterEach(() => Promise.all(links.splice(0).map((link) => link.close())))

  it('D8.5: every process that listens receives the tenant, the one that rings included', async () => {
    const bells = await Promise.all([open(), open()])
    const heard = bells.map(() => Promise.withResolvers<TenantId>())
    await Promise.all(bells.map((bell, i) => bell.listen((tenant) => heard[i]?.resolve(tenant))))
    bells[0]?.ring('acme' as TenantId)
    expect(await Promise.all(heard.map(({ promise }) => promise))).to.deep.equal(['acme', 'acme'])
  })

  it('a process that has stopped listening receives nothing, and ringing without Redis fails nobody', async () => {
    const [ringer, listener, stopped] = [await open(), await open(), await open()]
    const received: string[] = []
    const stop = await stopped.listen((tenant) => received.push(`stopped ${tenant}`))
    await stop()
    const heard = Promise.withResolvers<TenantId>()
    await listener.listen(heard.resolve)
    ringer.ring('acme' as TenantId)
    await heard.promise
    expect(received).to.deep.equal([])
    await Promise.all(links.map((link) => link.close()))
    ringer.ring('acme' as TenantId)
  })
})
