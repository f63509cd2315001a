import { expect } from 'chai'
import { hostNames } from '../../services/http/host.ts'
import { type Refusal, useGateways } from '../gateway/setup.ts'
import { request, Wire } from '../gateway/wire.ts'

const statusFor = async (port: number, host: string, head = 'GET /v1/health HTTP/1.1') => {
  const wire = await Wire.open(port)
  const text = await wire.send(request(head, { Host: host, Connection: 'close' })).end
  return Number(text.split(' ')[1])
}

describe('the Host header', () => {
  const start = useGateways()

  it('D2.10: on a loopback address only these are accepted: localhost, 127.0.0.1 and [::1]', async () => {
    const allowedHosts = hostNames({ host: '127.0.0.1', allowedHosts: [] }) ?? []
    const { port } = await start({ allowedHosts })
    for (const host of ['localhost', 'localhost:8080', 'LOCALHOST', '127.0.0.1:1', '[::1]', '[::1]:8080']) {
      expect(await statusFor(port, host), host).to.equal(200)
    }
    for (const host of [
      'evil.example',
      'localhost.evil.example',
      '127.0.0.2',
      '::1',
      'localhost.',
      'localhost:x',
      '',
    ]) {
      expect(await statusFor(port, host), host).to.equal(403)
    }
  })

  it('D2.10: the refusal is 403 permission_error, for a preflight too', async () => {
    const { port } = await start({ allowedHosts: ['localhost'] })
    const text = await (await Wire.open(port)).send(
      request('OPTIONS /v1/agent/run HTTP/1.1', { Host: 'evil.example', Connection: 'close' }),
    ).end
    expect(text).to.match(/^HTTP\/1.1 403 /)
    expect((JSON.parse(text.split('\r\n\r\n')[1] ?? '') as Refusal).error.type).to.equal('permission_error')
  })

  it('D2.10: ALLOWED_HOSTS extends the list, and enables the check for other addresses', () => {
    const loopback = ['localhost', '127.0.0.1', '[::1]']
    for (const [host, allowedHosts, names] of [
      ['127.0.0.1', [], loopback],
      ['127.0.0.53', [], loopback],
      ['localhost', [], loopback],
      ['::1', ['my.box'], [...loopback, 'my.box']],
      ['0.0.0.0', [], undefined],
      ['0.0.0.0', ['api.example'], [...loopback, 'api.example']],
    ] as const) {
      expect(hostNames({ host, allowedHosts }), host).to.deep.equal(names)
    }
  })

  it('D2.10: a POST that a foreign page sent is 403, above the rate limit, and a GET is not', async () => {
    const limiter = { take: () => expect.fail('counted') }
    const { post, url } = await start({ isLocal: true, limiter })
    for (const headers of [
      { 'sec-fetch-site': 'cross-site' },
      { origin: 'http://evil.example' },
      { origin: 'http://127.0.0.1:1' },
      { origin: 'null' },
      { origin: new URL(url).origin, 'sec-fetch-site': 'cross-site' },
    ]) {
      const response = await post('/agent/run', { prompt: 'x' }, headers)
      expect(response.status, JSON.stringify(headers)).to.equal(403)
      expect(((await response.json()) as Refusal).error.type).to.equal('permission_error')
      expect((await fetch(`${url}/health`, { headers })).status).to.equal(200)
    }
  })

  it('D2.10: a POST without an origin, of the own one or of one in CORS_ORIGINS is accepted', async () => {
    const cors = { origins: ['https://app.example'], allowHeaders: [], exposeHeaders: [] }
    const { post, url } = await start({ isLocal: true, cors })
    for (const headers of [
      {},
      { 'sec-fetch-site': 'same-origin', origin: new URL(url).origin },
      { 'sec-fetch-site': 'none' },
      { 'sec-fetch-site': 'cross-site', origin: 'https://app.example' },
    ] as Record<string, string>[]) {
      expect((await post('/sessions', 'x', headers)).status, JSON.stringify(headers)).to.equal(400)
    }
    const anyone = await start({ isLocal: true, cors: { ...cors, origins: ['*'] } })
    const foreign = { 'sec-fetch-site': 'cross-site', origin: 'https://other.example' }
    expect((await anyone.post('/sessions', 'x', foreign)).status).to.equal(400)
  })

  it('D2.10: two Host lines are 400 in the envelope, whatever they name', async () => {
    const { port } = await start({ allowedHosts: ['localhost'] })
    for (const second of ['localhost', 'evil.example']) {
      const wire = await Wire.open(port)
      const lines = ['GET /v1/health HTTP/1.1', 'Host: localhost', `Host: ${second}`, 'Connection: close', '', '']
      const text = await wire.send(...lines).end
      expect(text).to.match(/^HTTP\/1.1 400 [^]*"type":"invalid_request_error"/)
    }
  })

  it('without a list any host is accepted, but HTTP/1.1 without a Host header is 400 in the envelope', async () => {
    const { port } = await start()
    expect(await statusFor(port, 'anything.example')).to.equal(200)
    const wire = await Wire.open(port)
    const text = await wire.send('GET /v1/health HTTP/1.1', 'Connection: close', '', '').end
    expect(text).to.match(/^HTTP\/1.1 400 /)
    expect(text).to.match(/X-Request-ID: req_/)
    expect(text).to.include('"type":"invalid_request_error"')
  })
})
