import { expect } from 'chai'
import { type RedisServer, startRedis } from '../../scripts/local-services/redis.ts'
import { inBothForms, type Product } from '../support/product.ts'
import { TenantEvents } from '../support/tenant-events.ts'

/** The headers of a request from this address behind a proxy. The client itself has sent the made-up part. */
const from = (address: string, madeUp: string) => ({ 'x-forwarded-for': `${madeUp}, ${address}` })

const statusesOf = async (calls: Promise<{ status: number }>[]) =>
  (await Promise.all(calls)).map(({ status }) => status)
const countOf = (statuses: number[], status: number) => statuses.filter((one) => one === status).length

const PAGE = 'https://page.example'

inBothForms('the rate limit behind a proxy', (startProduct) => {
  let redis: RedisServer
  let product: Product
  before(async () => {
    redis = await startRedis()
    const shared = { RATE_LIMIT_STORE: 'redis', REDIS_URL: redis.url }
    const page = { CORS_ORIGINS: PAGE, CORS_RESUME: 'true' }
    product = await startProduct({ ...shared, ...page, RATE_LIMIT_RPM: '10', TRUST_PROXY: '1' })
  })
  after(async () => {
    await product.close()
    await redis.stop()
  })
  const calls = (count: number, headersOf: (i: number) => Record<string, string>) =>
    Array.from({ length: count }, (_, i) => product.call('GET', '/tools', undefined, headersOf(i)))

  it('RATE_LIMIT_STORE=redis: all gateways share one limit, whatever X-Forwarded-For the client sends', async () => {
    const replies = await Promise.all(calls(30, (i) => from('203.0.113.1', `198.51.100.${i}`)))
    const statuses = replies.map(({ status }) => status)
    expect([countOf(statuses, 200), countOf(statuses, 429)]).to.deep.equal([10, 20])
    for (const { status, headers } of replies) {
      expect(headers.get('ratelimit-limit')).to.equal('10')
      expect(Number(headers.get('ratelimit-reset'))).to.be.within(1, 60)
      if (status === 429) expect(Number(headers.get('retry-after'))).to.be.within(1, 60)
    }
    expect(await statusesOf(calls(12, () => from('203.0.113.2', '203.0.113.1')))).to.have.members([
      ...Array.from({ length: 10 }, () => 200),
      ...[429, 429],
    ])
  })

  it('D17a: a client that has polled too much answers permission requests, reads events and ends runs all the same', async () => {
    const headers = from('203.0.113.3', '198.51.100.1')
    product.model.answer([{ tool: 'Write', input: { path: 'a.txt', content: 'hello' } }], 'done')
    const stream = await product.run({ prompt: 'write it' }, headers)
    const { data } = await stream.until('permission_request')
    const polls = Array.from({ length: 12 }, () => product.call('GET', '/permissions', undefined, headers))
    expect(await statusesOf(polls)).to.include(429)
    const events = await TenantEvents.open(product.url, '', headers)
    const reply = await product.call(
      'POST',
      `/sessions/${stream.runId}/permissions/${data['id']}`,
      { allow: true },
      headers,
    )
    expect(reply.status, reply.text).to.equal(200)
    await events.until('run.ended', { run_id: stream.runId })
    events.leave()
    expect((await stream.all()).at(-1)?.event).to.equal('done')
    const gate = Promise.withResolvers<void>()
    product.model.answer([{ hold: gate.promise }, { text: 'late' }])
    const other = await product.run({ prompt: 'wait' }, from('203.0.113.4', '198.51.100.1'))
    expect((await product.call('DELETE', `/runs/${other.runId}`, undefined, headers)).status).to.equal(200)
    expect((await other.all()).at(-1)?.data).to.include({ code: 'cancelled' })
    gate.resolve()
    expect((await product.call('GET', '/runs', undefined, headers)).status).to.equal(429)
  })
})
