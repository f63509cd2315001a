import { APICallError } from '@ai-sdk/provider'
import { expect } from 'chai'
import { deltas, drain, eachClient, failure, HI, open, partsOf } from './drive.ts'

eachClient('the failing provider', (_name, use) => {
  it('refuses with a status, its own error body and Retry-After', async () => {
    const { server, model } = use()
    server.answer({ status: 429, retryAfter: 7 }, { status: 401 })
    const limited = await failure(drain(model))
    if (!APICallError.isInstance(limited)) throw limited
    expect(limited).to.include({ statusCode: 429, isRetryable: true })
    expect(limited.responseHeaders).to.include({ 'retry-after': '7' })
    expect(limited.data, 'a body the client does not know leaves no data').to.be.an('object')
    expect(await failure(drain(model))).to.include({ statusCode: 401, isRetryable: false })
  })

  it('reports that the input is too long', async () => {
    const { server, model } = use()
    server.answer({ contextTooLong: true }, { contextTooLong: true })
    for (const attempt of [() => drain(model), async () => model.doGenerate(HI)]) {
      const refused = await failure(attempt())
      expect(refused).to.include({ statusCode: 400, isRetryable: false })
      expect(String(refused)).to.match(/maximum context length|context window|prompt is too long|input token count/)
    }
  })

  it('fails within the stream', async () => {
    const { server, model } = use()
    server.answer([{ text: 'so far' }, { error: { status: 503, message: 'no more' } }])
    const parts = await drain(model)
    expect(deltas(parts, 'text-delta').join('')).to.equal('so far')
    expect(partsOf(parts, 'error').map(({ error }) => error)).to.have.nested.property('[0].message', 'no more')
  })

  it('fails as the first event of a stream it has accepted', async () => {
    const { server, model } = use()
    server.answer([{ error: { status: 503, message: 'no more' } }])
    const outcome = await drain(model).then(
      (parts) => partsOf(parts, 'error')[0]?.error,
      (cause: unknown) => cause,
    )
    expect(outcome).to.have.property('message', 'no more')
  })

  it('answers with a web page', async () => {
    const { server, model } = use()
    server.answer({ status: 502, body: '<html>bad gateway</html>', headers: { 'content-type': 'text/html' } })
    const refused = await failure(drain(model))
    expect(refused).to.include({ statusCode: 502, isRetryable: true, responseBody: '<html>bad gateway</html>' })
  })

  it('resets the connection before the headers', async () => {
    const { server, model } = use()
    server.answer({ resetBeforeHeaders: true })
    const cut = await failure(drain(model))
    expect(cut).to.include({ isRetryable: true, statusCode: undefined })
    expect(server.requests[0]?.closed, 'it was not the client').to.equal(false)
  })

  it('notices a client that leaves in mid-stream', async () => {
    const { server, model } = use()
    server.answer([{ text: 'so far' }, { hang: true }])
    const reader = new AbortController()
    const stream = await open(model, { abortSignal: reader.signal })
    await stream.next('text-delta')
    const request = await server.nextRequest()
    expect(request.closed).to.equal(false)
    reader.abort()
    expect(await failure(stream.rest())).to.have.property('name', 'AbortError')
    await request.closedByClient
    expect(request.closed).to.equal(true)
    expect(server.openRequests()).to.equal(0)
  })

  it('notices a client that leaves before the headers', async () => {
    const { server, model } = use()
    server.answer({ hangBeforeHeaders: true })
    const reader = new AbortController()
    const failed = failure(drain(model, { abortSignal: reader.signal }))
    const request = await server.nextRequest()
    reader.abort()
    await request.closedByClient
    expect(await failed).to.have.property('name', 'AbortError')
  })

  it('is unreachable after close, until it listens again at the same address', async () => {
    const { server, model } = use()
    await drain(model)
    await server.close()
    const refused = await failure(drain(model))
    expect(refused).to.include({ isRetryable: true, statusCode: undefined })
    await server.listen()
    expect(deltas(await drain(model), 'text-delta').join('')).to.equal('ok')
  })
})
