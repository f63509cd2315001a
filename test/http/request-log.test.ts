import { expect } from 'chai'
import { Feed, RUN_ID, useGateways } from '../gateway/setup.ts'
import { request, Wire } from '../gateway/wire.ts'

describe('the request log', () => {
  const start = useGateways()

  it('D1.3 LOG_LEVEL: has one line per request with its id, method, path, status and time', async () => {
    const { get, line, lines } = await start()
    await get('/health?token=secret', { 'x-request-id': 'mine-1' })
    const { ms, ...rest } = await line(({ msg }) => msg === 'request')
    expect(rest).to.deep.equal({
      level: 'info',
      msg: 'request',
      request_id: 'mine-1',
      method: 'GET',
      path: '/v1/health',
      status: 200,
      code: undefined,
      run_id: undefined,
      trace_id: undefined,
    })
    expect(ms).to.be.a('number')
    expect(JSON.stringify(lines)).to.not.include('secret')
  })

  it('D2.5: a valid X-Request-ID is kept, another one is replaced by req_ and hex digits', async () => {
    const { get } = await start()
    const longest = 'A.z_9-'.padEnd(128, 'x')
    expect((await get('/health', { 'x-request-id': longest })).headers.get('x-request-id')).to.equal(longest)
    for (const bad of ['', 'a b', 'a/b', 'ä', `${longest}x`, 'a,b']) {
      const { headers } = await get('/health', { 'x-request-id': bad })
      expect(headers.get('x-request-id'), bad).to.match(/^req_[0-9a-f]{32}$/)
    }
  })

  it('api.md "What the service does" 11: every response carries X-Request-ID, refusals included', async () => {
    const { get, post, url } = await start({ allowedHosts: ['127.0.0.1'] })
    for (const response of [
      await get('/nowhere'),
      await get('/sessions/%E0'),
      await post('/health'),
      await post('/agent/run', '{'),
      await fetch(url, { method: 'OPTIONS' }),
      await fetch(url, { headers: { 'x-request-id': 'kept' } }),
    ]) {
      expect(response.headers.get('x-request-id'), response.url).to.match(/^(req_[0-9a-f]{32}|kept)$/)
    }
  })

  it('a path is logged without its query and with at most 512 characters', async () => {
    const { get, line } = await start()
    await get(`/${'a'.repeat(600)}?token=secret`)
    const { path } = await line(({ msg }) => msg === 'request')
    expect(path).to.equal(`/v1/${'a'.repeat(508)}`)
  })

  it('the line of a stream names its run and is written when the stream has ended', async () => {
    const feed = new Feed()
    const { post, line, lines } = await start({ methods: { startRun: async () => ({ runId: RUN_ID, frames: feed }) } })
    const response = await post('/agent/run', { prompt: 'hi' })
    expect(lines).to.deep.equal([])
    feed.end()
    await response.text()
    expect(await line(({ msg }) => msg === 'request')).to.include({ status: 200, run_id: RUN_ID })
  })

  it('a client that disconnects before the answer is logged as 499, one that disconnects from a stream as cut', async () => {
    const started = Promise.withResolvers<void>()
    const feed = new Feed()
    const { port, line } = await start({
      methods: {
        async getRun() {
          started.resolve()
          return new Promise<never>(() => {})
        },
        followRun: async () => feed,
      },
    })
    const early = await Wire.open(port)
    early.send(request(`GET /v1/runs/${RUN_ID} HTTP/1.1`))
    await started.promise
    early.socket.destroy()
    expect(await line(({ status }) => status === 499)).to.include({ is_cut: true })

    const late = await Wire.open(port)
    await late.send(request(`GET /v1/runs/${RUN_ID}/events HTTP/1.1`)).until(/: ok/)
    late.socket.destroy()
    expect(await line(({ status }) => status === 200)).to.include({ is_cut: true, run_id: RUN_ID })
  })

  it('an unexpected error is logged with its cause and the request id, and answered with a 500 that reveals nothing', async () => {
    const { get, line } = await start({
      methods: { getRun: () => Promise.reject(new Error('redis://user:pw@10.0.0.1 refused')) },
    })
    const response = await get(`/runs/${RUN_ID}`, { 'x-request-id': 'r-1' })
    expect(response.status).to.equal(500)
    expect(await response.json()).to.deep.equal({ error: { type: 'internal_error', message: 'internal error' } })
    expect(await line(({ level }) => level === 'error')).to.include({ msg: 'request failed', request_id: 'r-1' })
  })

  it('api.md Errors: a handler that throws synchronously is 500 like one that rejects', async () => {
    const { get } = await start({
      methods: {
        getRun() {
          throw new TypeError('boom')
        },
      },
    })
    expect((await get(`/runs/${RUN_ID}`)).status).to.equal(500)
  })
})
