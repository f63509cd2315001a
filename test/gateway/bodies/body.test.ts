import { once } from 'node:events'
import { expect } from 'chai'
import { tenantId } from '../../support/tenant.ts'
import { until } from '../../support/until.ts'
import { sessionOf } from '../session-of.ts'
import { type Gateway, type Refusal, useGateways } from '../setup.ts'
import { request, Wire } from '../wire.ts'

const JSON_TYPE = { 'Content-Type': 'application/json' }
const POST = 'POST /v1/sessions HTTP/1.1'

const bodyOf = (size: number) => `{"x":"${'a'.repeat(size - 8)}"}`

describe('reading a body', () => {
  const start = useGateways()
  const open = (options: Parameters<typeof start>[0] = {}): Promise<Gateway> =>
    start({ methods: { createSession: async () => sessionOf() }, ...options })

  it('D2.1: application/json in UTF-8 is read, any other type or charset is 415', async () => {
    const { post } = await open()
    for (const [type, status] of [
      ['application/json', 201],
      ['Application/JSON; charset=UTF-8', 201],
      ['application/json;charset="utf-8"', 201],
      ['application/json; profile=x', 201],
      ['application/json; charset=latin1', 415],
      ['application/problem+json', 415],
      ['text/plain', 415],
      ['application/x-www-form-urlencoded', 415],
      ['multipart/form-data; boundary=x', 415],
      ['application/jsonp', 415],
    ] as const) {
      const response = await post('/sessions', '{}', { 'content-type': type })
      expect(response.status, type).to.equal(status)
      if (status === 415) expect(((await response.json()) as Refusal).error.type).to.equal('invalid_request_error')
    }
  })

  it('D2.1: a body without a type is 415, a request without a body needs no type', async () => {
    const { port, post } = await open()
    const wire = await Wire.open(port)
    expect(await wire.send(request(POST, { 'Content-Length': 2 }, '{}')).until(/\}\}$/)).to.match(/ 415 /)
    expect((await post('/sessions')).status).to.equal(201)
    const empty = await Wire.open(port)
    expect(await empty.send(request(POST, { 'Content-Length': 0 })).until(/\}$/)).to.match(/ 201 /)
  })

  it('a compressed body is 415, whatever it contains', async () => {
    const { post } = await open()
    for (const encoding of ['gzip', 'deflate', 'br', 'x-unknown']) {
      expect((await post('/sessions', '{}', { 'content-encoding': encoding })).status, encoding).to.equal(415)
    }
    expect((await post('/sessions', '{}', { 'content-encoding': 'identity' })).status).to.equal(201)
  })

  it('api.md Limits: a body of exactly 10,485,760 bytes is read, one byte more is 413', async () => {
    const { post } = await open()
    expect((await post('/sessions', bodyOf(10_485_760))).status).to.equal(201)
    expect((await post('/sessions', bodyOf(10_485_761))).status).to.equal(413)
  })

  it('a declared length above the limit is 413 before a byte is read, and the connection is closed', async () => {
    const wire = await Wire.open((await open()).port)
    wire.send(request(POST, { ...JSON_TYPE, 'Content-Length': 10_485_761 }, '{'))
    expect(await wire.until(/\}\}$/)).to.match(/^HTTP\/1.1 413 [^]*Connection: close/)
    wire.socket.destroy()
  })

  it('a client that continues to send after 413 gets the whole answer and no reset', async () => {
    const { port } = await open()
    const wire = await Wire.open(port)
    wire.send(request(POST, { ...JSON_TYPE, 'Content-Length': 40_000_000 }))
    for (let i = 0; i < 40; i++) if (!wire.socket.write(Buffer.alloc(1_000_000, 0x20))) await once(wire.socket, 'drain')
    const text = await wire.end
    expect(text).to.match(/^HTTP\/1.1 413 /)
    expect((JSON.parse(text.split('\r\n\r\n')[1] ?? '') as Refusal).error.message).to.include('10485760')
  })

  it('a chunked body is 413 as soon as it is too large', async () => {
    const wire = await Wire.open((await open({ body: { maxBytes: 1_000 } })).port)
    wire.send(request(POST, { ...JSON_TYPE, 'Transfer-Encoding': 'chunked' }))
    wire.send('3e8', ' '.repeat(1_000), '').send('1', ' ', '')
    expect(await wire.until(/\}\}$/)).to.match(/^HTTP\/1.1 413 /)
    expect(await wire.send('0', '', '').end).to.match(/Connection: close/)
  })

  it('a body that does not arrive in time is 408 in the envelope, and the connection is closed', async () => {
    const { port } = await open({ body: { timeoutMs: 50 } })
    const wire = await Wire.open(port)
    wire.send(request(POST, { ...JSON_TYPE, 'Content-Length': 100 }, '{"session_id"'))
    const text = await wire.until(/\}\}$/)
    expect(text).to.match(/^HTTP\/1.1 408 [^]*X-Request-ID: req_[^]*Connection: close/)
    expect(text).to.include('invalid_request_error')
    wire.socket.destroy()
  })

  it('a body is 503 with Retry-After while too many bytes of bodies are held', async () => {
    const { port } = await open({ body: { maxHeldBytes: 1_500, smallBytes: 0 } })
    const head = request(POST, { ...JSON_TYPE, 'Content-Length': 1_000 })
    const first = (await Wire.open(port)).send(head, `{${' '.repeat(800)}`)
    const second = (await Wire.open(port)).send(head, `{${' '.repeat(800)}`)
    const refused = await Promise.race([first.until(/\}\}$/), second.until(/\}\}$/)])
    expect(refused).to.match(/^HTTP\/1.1 503 [^]*Retry-After: 1\r\n[^]*unavailable_error/)
    first.socket.destroy()
    second.socket.destroy()
  })

  it('D2.9: a tenant that sends its share of the bodies gets 429, and another tenant is read', async () => {
    const identify = async (token = '') => ({ tenant: tenantId(token), subject: token })
    const { port, post } = await open({ identify, body: { maxHeldBytes: 2_000, smallBytes: 100, tenantShare: 0.5 } })
    const head = request(POST, { ...JSON_TYPE, 'Content-Length': 1_000, Authorization: 'hostile' })
    const wires = [await Wire.open(port), await Wire.open(port)]
    const refused = await Promise.race(wires.map((wire) => wire.send(head, `{${' '.repeat(800)}`).until(/\}\}$/)))
    expect(refused).to.match(/^HTTP\/1.1 429 [^]*Retry-After: 1\r\n[^]*rate_limit_error/)
    expect((await post('/sessions', bodyOf(900), { authorization: 'other' })).status).to.equal(201)
    expect((await post('/sessions', bodyOf(900), { authorization: 'hostile' })).status).to.equal(429)
    for (const wire of wires) wire.socket.destroy()
  })

  it('D2.9: a small body is read however much is being sent', async () => {
    const { port, post } = await open({ body: { maxHeldBytes: 1_000, smallBytes: 100 } })
    const wire = await Wire.open(port)
    wire.send(request(POST, { ...JSON_TYPE, 'Content-Length': 2_000 }, `{${' '.repeat(998)}`))
    await until(async () => (await post('/sessions', bodyOf(101))).status === 503, { what: 'the room to be full' })
    expect((await post('/sessions', bodyOf(100))).status).to.equal(201)
    wire.socket.destroy()
  })

  it('a large body that stalls is 408 after one window, and gives its room back', async () => {
    const { port, post } = await open({ body: { maxHeldBytes: 1_000, smallBytes: 100, windowMs: 20 } })
    const wire = await Wire.open(port)
    wire.send(request(POST, { ...JSON_TYPE, 'Content-Length': 2_000 }, `{${' '.repeat(998)}`))
    expect(await wire.until(/\}\}$/)).to.match(/^HTTP\/1.1 408 [^]*at least 10 KB a second/)
    expect((await post('/sessions', bodyOf(900))).status).to.equal(201)
    wire.socket.destroy()
  })

  it('an aborted upload releases the bytes that it held', async () => {
    const { port, post, line } = await open({ body: { maxHeldBytes: 1_000, smallBytes: 0 } })
    for (let i = 0; i < 3; i++) {
      const wire = await Wire.open(port)
      wire.send(
        request(POST, { ...JSON_TYPE, 'Content-Length': 1_000, 'X-Request-ID': `left-${i}` }, `{${' '.repeat(900)}`),
      )
      wire.socket.destroySoon()
      await line(({ request_id }) => request_id === `left-${i}`)
    }
    expect((await post('/sessions', `{${' '.repeat(900)}}`)).status).to.equal(201)
  })

  it('a client that expects 100-continue gets it when its body will be read, and otherwise only the refusal', async () => {
    const { port } = await open()
    const expectation = { ...JSON_TYPE, Expect: '100-continue' }
    const wire = await Wire.open(port)
    await wire.send(request(POST, { ...expectation, 'Content-Length': 2 })).until(/^HTTP\/1.1 100 Continue\r\n\r\n$/)
    await wire.send('{}').until(/ 201 Created/)
    const refused = await Wire.open(port)
    const text = await refused.send(request(POST, { ...expectation, 'Content-Length': 99_999_999 })).until(/\}\}$/)
    expect(text).to.match(/^HTTP\/1.1 413 /)
    refused.socket.destroy()
  })

  it('two requests in one packet are answered in order', async () => {
    const wire = await Wire.open((await open()).port)
    const one = request(POST, { ...JSON_TYPE, 'Content-Length': 2 }, '{}')
    wire.send(one + one.replace('/sessions', '/nowhere'))
    const text = await wire.until(/not_found_error/)
    expect([...text.matchAll(/HTTP\/1.1 (\d+)/g)].map(([, status]) => status)).to.deep.equal(['201', '404'])
  })
})
