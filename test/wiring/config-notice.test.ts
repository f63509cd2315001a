import { expect } from 'chai'
import { createRedisConfigNotice } from '../../services/wiring/config-notice.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import { openRedisLink, type RedisLink } from '../../shared/platform/redis/link.ts'
import { useRedis } from '../support/redis.ts'
import { tenantId } from '../support/tenant.ts'

describe('the notice of the configuration, over Redis', () => {
  const redis = useRedis()
  const links: RedisLink[] = []
  const open = async () => {
    const link = await openRedisLink(redis.url)
    links.push(link)
    return createRedisConfigNotice(link)
  }
  afterEach(() => Promise.all(links.splice(0).map((link) => link.close())))

  it('D8.5: every process that listens receives the tenant, the one that rings included', async () => {
    const notices = await Promise.all([open(), open()])
    const heard = notices.map(() => Promise.withResolvers<TenantId>())
    await Promise.all(notices.map((notice, i) => notice.listen((tenant) => heard[i]?.resolve(tenant))))
    notices[0]?.send(tenantId('acme'))
    expect(await Promise.all(heard.map(({ promise }) => promise))).to.deep.equal(['acme', 'acme'])
  })

  it('a process that has stopped listening receives nothing, and ringing without Redis fails nobody', async () => {
    const [sender, listener, stopped] = [await open(), await open(), await open()]
    const received: string[] = []
    const stop = await stopped.listen((tenant) => received.push(`stopped ${tenant}`))
    await stop()
    const heard = Promise.withResolvers<TenantId>()
    await listener.listen(heard.resolve)
    sender.send(tenantId('acme'))
    await heard.promise
    expect(received).to.deep.equal([])
    await Promise.all(links.map((link) => link.close()))
    sender.send(tenantId('acme'))
  })
})
