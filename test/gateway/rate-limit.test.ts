import { expect } from 'chai'
import { clientKey } from '../../services/gateway/middleware/rate-limit.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import { MemoryRateLimiter } from '../../shared/tenancy/rate/memory.ts'
import type { RateLimiter } from '../../shared/tenancy/rate/port.ts'
import { tenantId } from '../support/tenant.ts'
import { DONE, framesOf, PERMISSION_ID, RUN_ID, refusalOf, useGateways } from './setup.ts'

describe('the client that a request is counted for', () => {
  const keys: [string, string][] = [
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['::ffff:cb00:7107', '203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002:ffff::', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
    ['::fffe:203.0.113.7', '0:0:0:0::/64'],
    ['::1:ffff:203.0.113.7', '0:0:0:0::/64'],
    ['2001:db8:1:2:ffff:ffff:ffff:ffff', '2001:db8:1:2::/64'],
    ['2001:db8:1:3::', '2001:db8:1:3::/64'],
  ]
  for (const [address, key] of keys) {
    it(`${address} is counted as ${key}`, () => expect(clientKey(address)).to.equal(key))
  }
})

const limiter = (perMinute: number) => ({ limiter: new MemoryRateLimiter({ perMinute }) })

const neverAsked = () => Promise.reject(new Error('never asked'))

describe('rate limiting', () => {
  const polled = new MemoryRateLimiter({ perMinute: 2 })
  const start = useGateways()

  it('D2.9: a response says how many requests are left, a refusal when to try again', async () => {
    const { get } = await start(limiter(2))
    const first = await get('/tools')
    expect(first.headers.get('ratelimit-limit')).to.equal('2')
    expect(first.headers.get('ratelimit-remaining')).to.equal('1')
    expect(first.headers.get('ratelimit-reset')).to.equal('60')
    await get('/tools')
    const third = await get('/tools')
    expect(third.status).to.equal(429)
    expect(third.headers.get('ratelimit-remaining')).to.equal('0')
    expect(Number(third.headers.get('retry-after'))).to.be.within(1, 60)
    expect((await refusalOf(third)).type).to.equal('rate_limit_error')
  })

  it('api.md Limits: requests are counted before authentication, also with wrong tokens and for unknown paths', async () => {
    const { get } = await start({ ...limiter(1), identify: neverAsked })
    await get('/nowhere')
    expect((await get('/tools')).status).to.equal(429)
  })

  it('D2.9: an authenticated request counts for its tenant as well, whatever address it comes from', async () => {
    const identify = async (token = 'anonymous') => ({ tenant: tenantId(token), subject: token })
    const tenantLimiter = new MemoryRateLimiter({ perMinute: 2 })
    const { get } = await start({ ...limiter(3), tenantLimiter, identify, trustProxy: 1 })
    const from = (authorization: string, address: number) =>
      get('/tools', { authorization, 'x-forwarded-for': `203.0.113.${address}` })
    expect((await from('hostile', 1)).headers.get('ratelimit-remaining')).to.equal('1')
    expect((await from('hostile', 2)).status).to.equal(200)
    const third = await from('hostile', 3)
    expect(third.status).to.equal(429)
    expect(third.headers.get('ratelimit-limit')).to.equal('2')
    expect(Number(third.headers.get('retry-after'))).to.be.within(1, 60)
    expect((await from('other', 3)).status).to.equal(200)
  })

  it('while the limits of a tenant cannot be read, no request begins work, and what runs can be followed, ended and limited', async () => {
    const away = new AppError('unavailable', 'the store does not answer', { retryAfterSecs: 2 })
    const { get, url } = await start({ tenantRequests: { take: () => Promise.reject(away) } })
    const send = (method: string, path: string) => fetch(url + path, { method })
    const refused = await send('POST', '/agent/run')
    expect([refused.status, refused.headers.get('retry-after')]).to.deep.equal([503, '2'])
    expect((await get('/tools')).status).to.equal(200)
    expect((await send('DELETE', '/runs/none')).status).to.equal(404)
    expect(await refusalOf(await send('PUT', '/config/limits'))).to.include({ code: 'config_disabled' })
  })

  it("D17a: a client's polling keeps it from no control call, and these are limited too", async () => {
    const { get, url } = await start({
      ...limiter(2),
      tenantRequests: { take: async (_tenant, kind) => (kind === 'control' ? undefined : polled.take('all')) },
      methods: { cancelRun: async () => {}, replyPermission: async () => {} },
    })
    for (let polls = 0; polls < 3; polls++) await get('/tools')
    expect((await get('/tools')).status).to.equal(429)
    expect((await fetch(`${url}/runs/${RUN_ID}`, { method: 'DELETE' })).status).to.equal(200)
    const body = JSON.stringify({ allow: true })
    const reply = `${url}/sessions/s/permissions/${PERMISSION_ID}`
    const send = () => fetch(reply, { method: 'POST', body, headers: { 'content-type': 'application/json' } })
    expect((await send()).status).to.equal(200)
    expect((await send()).status).to.equal(429)
  })

  it("D17a: a client's polling keeps it from no answer in a dialect, above the limit prompts are refused, and answers are limited, too", async () => {
    const sent: string[] = []
    const requests = new MemoryRateLimiter({ perMinute: 2 })
    const { get, post, line } = await start({
      ...limiter(2),
      tenantRequests: { take: async (_tenant, kind) => requests.take(String(kind)) },
      methods: {
        replyPermission: async (_tenant, _scope, id) => void sent.push(id),
        followRun: async () => framesOf(DONE),
      },
    })
    for (let polls = 0; polls < 2; polls++) await get('/tools')
    const prompt = await post('/ag-ui', { threadId: 't', runId: 'r', messages: [{ role: 'user', content: 'hi' }] })
    expect([prompt.status, (await refusalOf(prompt)).type]).to.deep.equal([429, 'rate_limit_error'])
    expect(Number(prompt.headers.get('retry-after'))).to.be.within(1, 60)
    const resume = [{ interruptId: `${RUN_ID}/${PERMISSION_ID}`, status: 'resolved', payload: { approved: true } }]
    const answer = () => post('/ag-ui', { threadId: 't', runId: 's', resume })
    expect((await answer()).status).to.equal(200)
    expect(await line(({ path, status }) => path === '/v1/ag-ui' && status === 200)).to.include({ code: undefined })
    expect((await answer()).status).to.equal(429)
    expect(sent).to.deep.equal([PERMISSION_ID])
  })

  it('D2.9: requests without a token are counted for their addresses only', async () => {
    const tenantLimiter = new MemoryRateLimiter({ perMinute: 1 })
    const { get } = await start({ ...limiter(2), tenantLimiter, trustProxy: 1 })
    for (const address of ['203.0.113.1', '203.0.113.2', '203.0.113.1']) {
      expect((await get('/tools', { 'x-forwarded-for': address })).status).to.equal(200)
    }
  })

  it('api.md Authentication 4: /health, OPTIONS and the explorer are not limited and have no RateLimit headers', async () => {
    const { get, url } = await start(limiter(1))
    await get('/tools')
    for (const [method, path] of [
      ['GET', '/health'],
      ['OPTIONS', '/tools'],
      ['GET', '/docs'],
      ['GET', '/openapi.json'],
    ] as const) {
      const response = await fetch(url + path, { method })
      expect(response.status, path).to.be.lessThan(300)
      expect(response.headers.has('ratelimit-limit'), path).to.equal(false)
      await response.arrayBuffer()
    }
  })

  it('D1.3 RATE_LIMIT_RPM: without a limiter nothing is limited and there are no RateLimit headers', async () => {
    const { headers, status } = await (await start()).get('/tools')
    expect(status).to.equal(200)
    expect(headers.has('ratelimit-limit')).to.equal(false)
  })

  it('a request is refused when its limiter fails', async () => {
    const broken: RateLimiter = { take: () => Promise.reject(new Error('redis://secret is away')) }
    const response = await (await start({ limiter: broken })).get('/tools')
    expect(response.status).to.equal(500)
    expect(await response.text()).to.not.include('redis')
  })

  it('D1.3 TRUST_PROXY: by default X-Forwarded-For is ignored', async () => {
    const { get } = await start(limiter(1))
    await get('/tools', { 'x-forwarded-for': '203.0.113.1' })
    expect((await get('/tools', { 'x-forwarded-for': '203.0.113.2' })).status).to.equal(429)
  })

  it('D1.3 TRUST_PROXY: behind one proxy the last address is the client, and a client cannot choose it', async () => {
    const { get } = await start({ ...limiter(1), trustProxy: 1 })
    await get('/tools', { 'x-forwarded-for': '198.51.100.1, 203.0.113.1' })
    expect((await get('/tools', { 'x-forwarded-for': '198.51.100.2, 203.0.113.1' })).status).to.equal(429)
    expect((await get('/tools', { 'x-forwarded-for': '198.51.100.1, 203.0.113.2' })).status).to.equal(200)
  })

  it('D1.3 TRUST_PROXY: with a CIDR list the last address outside of it is the client', async () => {
    const { get } = await start({ ...limiter(1), trustProxy: ['127.0.0.0/8', '10.0.0.0/8'] })
    await get('/tools', { 'x-forwarded-for': '203.0.113.1, 10.1.2.3' })
    expect((await get('/tools', { 'x-forwarded-for': '203.0.113.1, 10.9.9.9' })).status).to.equal(429)
  })

  it('when a proxy reports something else than an address, the proxy itself is the client', async () => {
    const { get } = await start({ ...limiter(1), trustProxy: 1 })
    await get('/tools', { 'x-forwarded-for': 'unknown' })
    expect((await get('/tools', { 'x-forwarded-for': 'a:b:c' })).status).to.equal(429)
  })
})
