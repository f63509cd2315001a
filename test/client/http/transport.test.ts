import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { expect } from 'chai'
import {
  AgentEngine,
  ApiError,
  ConnectionFailed,
  createFiles,
  type EngineOptions,
} from '../../../shared/client/client.ts'

type Answer = (res: ServerResponse) => void

const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Answer =>
  (res) => {
    res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
  }
const error = (status: number, code?: string, headers?: Record<string, string>) =>
  json(
    status,
    { error: { type: 'some_error', message: 'it is refused', ...(code !== undefined && { code }) } },
    headers,
  )
const breakOff: Answer = (res) => res.destroy()
const saysNothing: Answer = () => {}

describe('the transport of the client', () => {
  let server: Server
  let answers: Answer[]
  let requests: { method: string; url: string; headers: IncomingHttpHeaders }[]

  beforeEach(async () => {
    answers = []
    requests = []
    server = createServer((req, res) => {
      requests.push({ method: req.method ?? '', url: req.url ?? '', headers: req.headers })
      req.resume()
      const answer = answers.shift() ?? json(200, { fine: true })
      answer(res)
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
  })
  afterEach(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  const engineOf = (options: Partial<EngineOptions> = {}) =>
    new AgentEngine({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/`, ...options })
  const failureOf = (promise: Promise<unknown>) =>
    promise.then(
      () => expect.fail('it has not failed'),
      (cause: unknown) => cause,
    )

  it('repeats what reads after a connection that broke, and after 429, 502, 503 and 504', async () => {
    for (const answer of [breakOff, error(429), error(502), error(503), error(504)]) {
      answers = [answer]
      expect(await engineOf().raw.request('GET', '/a')).to.deep.equal({ fine: true })
    }
    answers = [breakOff]
    await engineOf().raw.request('DELETE', '/a')
    expect(requests).to.have.length(12)
    for (const method of ['PUT', 'PATCH']) {
      answers = [error(503)]
      expect(await failureOf(engineOf().raw.request(method, '/a'))).to.include({ status: 503 })
    }
    const bug = new Error('no token')
    const token = () => Promise.reject(bug)
    expect(await failureOf(engineOf({ token }).raw.request('GET', '/a'))).to.equal(bug)
  })

  it('follows what reads to another address, and sends a body only to the server that it was written for', async () => {
    const moved: Answer = (res) => res.writeHead(307, { location: '/b' }).end()
    answers = [moved]
    expect(await engineOf().raw.request('GET', '/a')).to.deep.equal({ fine: true })
    answers = [moved]
    expect(await failureOf(engineOf().raw.request('POST', '/a', { body: {} }))).to.be.instanceOf(ConnectionFailed)
    expect(requests.map(({ url }) => url)).to.deep.equal(['/v1/a', '/b', '/v1/a'])
  })

  it('takes an empty answer for one where no field of it is wanted', async () => {
    answers = [(res) => res.end()]
    expect(await engineOf().raw.request('GET', '/a')).to.equal(undefined)
    for (const text of ['', '[1]', '<html>']) {
      answers = [(res) => res.end(text)]
      expect(await failureOf(engineOf().me())).to.match(/check the url/)
    }
    answers = [(res) => res.end('[1]')]
    expect(await failureOf(engineOf().raw.request('GET', '/a'))).to.match(/check the url/)
  })

  it('sends a file as its bytes, from the disk, a blob or memory, under its name, and once', async () => {
    const files = createFiles(engineOf())
    const file = new URL(import.meta.url).pathname
    const sent: Buffer[] = []
    server.prependListener('request', (req) => void buffer(req).then((bytes) => sent.push(bytes)))
    await files.upload(file)
    await files.upload(new File(['of a page'], 'a b.txt'))
    await files.upload(new Uint8Array([1, 2]), { name: 'raw', expiresInSecs: 60 })
    expect(sent.map((bytes) => bytes.toString())).to.deep.equal([await readFile(file, 'utf8'), 'of a page', '\x01\x02'])
    expect(requests.map(({ url }) => url)).to.deep.equal([
      '/v1/files?name=transport.test.ts',
      '/v1/files?name=a+b.txt',
      '/v1/files?name=raw&expires_in_secs=60',
    ])
    expect(new Set(requests.map(({ headers }) => headers['content-type']))).to.have.keys('application/octet-stream')
    answers = [error(503)]
    expect(await failureOf(files.upload(new Blob(['x'])))).to.be.instanceOf(ApiError)
    expect(requests).to.have.length(4)
    answers = ['f', 'g'].map((file_id) => json(200, { file_id }))
    const attached = await files.attach(new Blob(['x']), new Blob(['y']))
    expect(attached).to.deep.equal([{ file_id: 'f' }, { file_id: 'g' }])
  })

  it('repeats a POST with a key, and one without only after 429', async () => {
    answers = [breakOff, error(503)]
    await engineOf().raw.request('POST', '/a', { body: {}, idempotencyKey: 'k' })
    expect(requests.map(({ headers }) => headers['idempotency-key'])).to.deep.equal(['k', 'k', 'k'])
    answers = [error(429, undefined, { 'retry-after': '0' })]
    await engineOf().raw.request('POST', '/a', { body: {} })
    expect(requests).to.have.length(5)
    answers = [breakOff]
    expect(await failureOf(engineOf().raw.request('POST', '/a', { body: {} }))).to.be.instanceOf(ConnectionFailed)
    answers = [error(503)]
    expect(await failureOf(engineOf().raw.request('POST', '/a', { body: {} }))).to.be.instanceOf(ApiError)
    expect(requests).to.have.length(7)
  })

  it('repeats nothing for long: as often as it is told, and not after a pause of more than a minute', async () => {
    answers = [error(503), error(503), error(503)]
    await failureOf(engineOf({ retry: { attempts: 2 } }).raw.request('GET', '/a'))
    expect(requests).to.have.length(2)
    answers = [error(429, undefined, { 'retry-after': '61' })]
    expect(await failureOf(engineOf().raw.request('GET', '/a'))).to.include({ status: 429, retryAfterMs: 61_000 })
    expect(requests).to.have.length(3)
  })

  it('looks for a stream that it resumes as long as it is told, however often that is', async () => {
    const away = () => error(500, undefined, { 'retry-after': '0' })
    const events: Answer = (res) =>
      res.writeHead(200, { 'content-type': 'text/event-stream' }).end('id: 1\nevent: plan_ended\ndata: {}\n\n')
    const read = async (resumeMs?: number) => {
      const seen: string[] = []
      const plan = engineOf({ retry: { resumeMs } }).plans.of('plan_1')
      for await (const { event } of plan.events()) seen.push(event)
      return seen
    }
    answers = [breakOff, away(), away(), away(), away(), away(), events] // The pause behind the sixth failure would take seconds.
    expect(await read()).to.deep.equal(['plan_ended'])
    answers = [away(), events]
    expect(await failureOf(read(-1))).to.include({ status: 500 })
  })

  it('asks for the token before each request, and once more with the refused one after a 401', async () => {
    const asked: (string | undefined)[] = []
    const token = async (refused?: string) => {
      asked.push(refused)
      return refused === undefined ? 'old' : 'new'
    }
    answers = [error(401)]
    expect(await engineOf({ token }).raw.request('POST', '/a', { body: {} })).to.deep.equal({ fine: true })
    expect(asked).to.deep.equal([undefined, 'old'])
    expect(requests.map(({ headers }) => headers.authorization)).to.deep.equal(['Bearer old', 'Bearer new'])
    answers = [error(401), error(401)]
    expect(await failureOf(engineOf({ token }).raw.request('GET', '/a'))).to.include({ status: 401 })
    answers = [error(401)]
    expect(await failureOf(engineOf({ token: 'fixed' }).raw.request('GET', '/a'))).to.include({ status: 401 })
    expect(requests).to.have.length(5)
  })

  it('waits for an answer, and for a token, no longer than it is told', async () => {
    const options = { retry: { attempts: 1 }, timeouts: { requestMs: 50 } }
    answers = [saysNothing]
    expect(await failureOf(engineOf(options).raw.request('GET', '/a'))).to.be.instanceOf(ConnectionFailed)
    const never = () => new Promise<string>(() => {})
    expect(await failureOf(engineOf({ ...options, token: never }).raw.request('GET', '/a'))).to.be.instanceOf(
      ConnectionFailed,
    )
    answers = [saysNothing]
    expect(await failureOf(engineOf({ retry: { attempts: 1 } }).me({ timeoutMs: 50 }))).to.be.instanceOf(
      ConnectionFailed,
    )
  })

  it('stops at once when the caller aborts, with the reason that the caller gives, in a pause too', async () => {
    const reason = new Error('I have to go')
    for (const answer of [saysNothing, error(503, undefined, { 'retry-after': '30' })]) {
      answers = [answer]
      const caller = new AbortController()
      const called = failureOf(engineOf().raw.request('GET', '/a', { signal: caller.signal }))
      await once(server, 'request')
      caller.abort(reason)
      expect(await called).to.equal(reason)
    }
  })

  it('sends the trace context and further headers, and leaves out parameters that are undefined', async () => {
    const engine = engineOf({ headers: () => ({ 'x-team': 'blue' }) })
    await engine.raw.request('GET', '/a', { query: { a: 1, b: undefined, c: 'x y' }, traceparent: '00-1-2-01' })
    expect(requests[0]).to.include({ url: '/v1/a?a=1&c=x+y' })
    expect(requests[0]?.headers).to.include({ 'x-team': 'blue', traceparent: '00-1-2-01' })
  })

  it("shows an error as the server's, and one of a proxy as its text", async () => {
    answers = [
      json(400, { error: { type: 'invalid_request_error', message: 'no', param: '/a' } }, { 'x-request-id': 'r1' }),
    ]
    const refused = await failureOf(engineOf().raw.request('GET', '/a'))
    expect(refused).to.include({
      status: 400,
      type: 'invalid_request_error',
      message: 'no',
      param: '/a',
      requestId: 'r1',
    })
    answers = [(res) => res.writeHead(413, { 'content-type': 'text/html' }).end('<h1>too large</h1>')]
    expect(await failureOf(engineOf().raw.request('GET', '/a'))).to.nested.include({ status: 413, type: 'unknown' })
  })

  it('does not take a page of something in between for a stream', async () => {
    answers = [(res) => res.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Sign in</h1>')]
    expect(String(await failureOf(engineOf().run({ prompt: 'hi' }).result()))).to.match(
      /^ConnectionFailed: .*"text.html": check the url/,
    )
    expect(requests).to.have.length(1)
  })

  it("tells the server's times by this machine's clock, which may be wrong", async () => {
    const engine = engineOf()
    const aheadOf = async (ms: number) => {
      answers = [json(200, {}, { date: new Date(Date.now() + ms).toUTCString() })]
      await engine.raw.request('GET', '/a')
      return new Date('2026-01-01T01:00:00Z').getTime() - engine.localTime('2026-01-01T01:00:00Z').getTime()
    }
    for (const ms of [3_600_000, -3_600_000]) expect(await aheadOf(ms)).to.be.closeTo(ms, 2_000)
    expect(await aheadOf(0), 'whole seconds are no difference').to.equal(0)
  })

  it('fills in the parameters of a path, and pages through a list', async () => {
    answers = [
      json(200, { name: 'a/b' }),
      json(200, { runs: [1, 2], next_cursor: 'c' }),
      json(200, { runs: [3], next_cursor: null }),
    ]
    await engineOf().raw.get('/flows/{name}', { path: { name: 'a/b' } })
    expect(await engineOf().runs.list({ status: 'done' }).all()).to.deep.equal([1, 2, 3])
    expect(requests.map(({ url }) => url)).to.deep.equal([
      '/v1/flows/a%2Fb',
      '/v1/runs?status=done',
      '/v1/runs?status=done&cursor=c',
    ])
  })
})
