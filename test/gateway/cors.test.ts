import { expect } from 'chai'
import { createTokenIdentify } from '../../services/gateway/open-identify.ts'
import { useGateways } from './setup.ts'

const PAGE = 'https://app.example'
const rules = (origins: string[], allowHeaders: string[] = [], exposeHeaders: string[] = []) => ({
  cors: { origins, allowHeaders, exposeHeaders },
})

const CONSTANT = {
  'access-control-allow-methods': 'GET, POST, PUT, DELETE, OPTIONS',
  'access-control-allow-headers': 'Content-Type, Authorization',
  'access-control-expose-headers': 'X-Request-ID',
  'access-control-max-age': '3600',
}

describe('CORS', () => {
  const start = useGateways()

  it('api.md "CORS headers set": every response has the four constant headers, exactly as documented', async () => {
    const { get, post, url } = await start({ identify: createTokenIdentify('t') })
    const responses = [
      await get('/health'),
      await get('/tools'),
      await get('/nowhere', { authorization: 'Bearer t' }),
      await post('/health'),
      await fetch(`${url}/agent/run`, { method: 'OPTIONS' }),
    ]
    expect(responses.map(({ status }) => status)).to.deep.equal([200, 401, 404, 405, 204])
    for (const { headers } of responses) expect(Object.fromEntries(headers)).to.include(CONSTANT)
  })

  it('a configured origin may read the answer, another one may not, and Vary names Origin', async () => {
    const { get } = await start(rules([PAGE, 'http://localhost:3000']))
    for (const [origin, allowed] of [
      [PAGE, PAGE],
      ['http://localhost:3000', 'http://localhost:3000'],
      ['https://evil.example', null],
      [`${PAGE}.evil.example`, null],
      ['null', null],
      ['', null],
    ] as const) {
      const { headers } = await get('/health', origin ? { origin } : {})
      expect(headers.get('access-control-allow-origin'), origin).to.equal(allowed)
      expect(headers.get('vary')).to.equal('Origin')
    }
  })

  it('`*` allows any origin', async () => {
    const { headers } = await (await start(rules(['*']))).get('/health', { origin: PAGE })
    expect(headers.get('access-control-allow-origin')).to.equal('*')
    expect(headers.has('vary')).to.equal(false)
  })

  it('without configured origins no origin is allowed', async () => {
    const { headers } = await (await start()).get('/health', { origin: PAGE })
    expect(headers.has('access-control-allow-origin')).to.equal(false)
  })

  it('a preflight is 204 without a body for every path', async () => {
    const { url } = await start(rules([PAGE]))
    const response = await fetch(`${url}/agent/run`, {
      method: 'OPTIONS',
      headers: { origin: PAGE, 'access-control-request-method': 'POST' },
    })
    expect(response.status).to.equal(204)
    expect(response.headers.get('access-control-allow-origin')).to.equal(PAGE)
    expect(await response.text()).to.equal('')
  })

  it('D1.3: CORS_ALLOW_HEADERS and CORS_EXPOSE_HEADERS add to the lists', async () => {
    const { headers } = await (await start(rules([], ['X-Api-Version'], ['X-Run-ID', 'Retry-After']))).get('/health')
    expect(headers.get('access-control-allow-headers')).to.equal('Content-Type, Authorization, X-Api-Version')
    expect(headers.get('access-control-expose-headers')).to.equal('X-Request-ID, X-Run-ID, Retry-After')
  })
})
