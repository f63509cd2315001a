import { expect } from 'chai'
import type { EventStream } from '../support/event-stream.ts'
import { inBothForms, type Product } from '../support/product.ts'
import { until } from '../support/until.ts'

inBothForms('runs', (startProduct, form) => {
  let product: Product
  before(async () => {
    product = await startProduct()
  })
  after(() => product.close())

  const eventsFrom = (runId: string, headers: Record<string, string> = {}, query = '') =>
    product.stream(`/runs/${runId}/events${query}`, undefined, headers)

  it('D4.5a: a client that reconnects with Last-Event-ID misses no event', async () => {
    const gate = Promise.withResolvers<void>()
    product.model.answer([{ text: ['a', 'b'] }, { hold: gate.promise }, { text: ['c', 'd'] }])
    const first = await product.run({ prompt: 'hi' })
    await first.until('text_delta')
    const { id } = await first.until('text_delta')
    first.leave()
    const second = await eventsFrom(first.runId, { 'last-event-id': String(id) })
    gate.resolve()
    const frames = [...first.frames, ...(await second.all())]
    expect(frames.map((frame) => frame.id)).to.deep.equal(frames.map((_, i) => i + 1))
    expect(frames.find(({ event }) => event === 'text')?.data).to.deep.equal({ text: 'abcd' })
  })

  it('D4.5c: an ended run is replayed from its beginning, or from behind ?last_event_id=; after its last event the answer is 204', async () => {
    product.model.answer('hello')
    const stream = await product.run({ prompt: 'hi' })
    const frames = await stream.all()
    expect(await (await eventsFrom(stream.runId)).all()).to.deep.equal(frames)
    expect(await (await eventsFrom(stream.runId, {}, '?last_event_id=2')).all()).to.deep.equal(frames.slice(2))
    const over = await product.call('GET', `/runs/${stream.runId}/events?last_event_id=${frames.length}`)
    expect([over.status, over.text]).to.deep.equal([204, ''])
  })

  it('D4.5e: when the next event is no longer kept, the record of the ended run goes on, and without one the stream ends with stream_gap', async () => {
    product.model.answer([{ tokens: 6000 }])
    const stream = await product.run({ prompt: 'much' })
    const frames = await stream.all()
    expect(frames.length).to.be.greaterThan(6000)
    const rest = await (await eventsFrom(stream.runId, { 'last-event-id': '5' })).all()
    if (form === 'standalone') {
      const whole = frames.filter(({ id, event }) => id > 5 && event !== 'text_delta')
      expect(rest).to.deep.equal(whole)
    } else {
      expect(rest).to.have.length(1)
      expect(rest[0]).to.include({ id: 5, event: 'error' })
      expect(rest[0]?.data).to.include({ code: 'stream_gap', retryable: true })
    }
    const last = String(frames.length - 10)
    expect(await (await eventsFrom(stream.runId, { 'last-event-id': last })).all()).to.deep.equal(frames.slice(-10))
  })

  it('D4.5f: DELETE aborts the run and its model call at once', async () => {
    product.model.answer([{ text: 'hi' }, { hang: true }])
    const stream = await product.run({ prompt: 'hi' })
    await stream.until('text_delta')
    const { status, body } = await product.call('DELETE', `/runs/${stream.runId}`)
    expect(status).to.equal(200)
    expect(body).to.deep.equal({ status: 'cancelled' })
    const last = (await stream.all()).at(-1)
    expect(last?.data).to.include({ code: 'cancelled', retryable: false })
    await product.model.requests.at(-1)?.closedByClient
    expect((await product.call('GET', `/runs/${stream.runId}`)).body).to.include({ status: 'cancelled' })
  })

  it('D4.5g: GET /runs/{id} returns the state of a run, GET /runs lists the newest first and filters by status', async () => {
    product.model.answer('hello', { status: 400 })
    const good = await product.run({ prompt: 'hi' })
    const frames = await good.all()
    const failed = await product.run({ prompt: 'hi' })
    await failed.all()
    const { body } = await product.call('GET', `/runs/${good.runId}`)
    expect(body).to.include.all.keys('run_id', 'status', 'started_at', 'ended_at', 'event_count')
    expect(body).to.include({ run_id: good.runId, status: 'done', event_count: frames.length })
    const list = (await product.call('GET', '/runs?limit=1')).body as {
      runs: { run_id: string }[]
      next_cursor: string
    }
    expect(list.runs).to.have.length(1)
    expect(list.next_cursor).to.be.a('string')
    const all = (await product.call('GET', '/runs?status=failed')).body as {
      runs: { run_id: string; status: string }[]
    }
    expect(all.runs.map(({ run_id }) => run_id)).to.include(failed.runId)
    expect(all.runs.every(({ status }) => status === 'failed')).to.equal(true)
    for (const query of ['limit=0', 'limit=201', 'limit=x', 'status=lost', 'cursor=%7B%7D', 'limit=1&limit=2']) {
      expect((await product.call('GET', `/runs?${query}`)).status, query).to.equal(400)
    }
  })

  it('two clients can follow one run, and each receives all of it', async () => {
    const gate = Promise.withResolvers<void>()
    product.model.answer([{ text: 'a' }, { hold: gate.promise }, { text: 'b' }])
    const first = await product.run({ prompt: 'hi' })
    const second = await eventsFrom(first.runId)
    gate.resolve()
    expect(await second.all()).to.deep.equal(await first.all())
  })
})

inBothForms('runs whose client has left', (startProduct, form) => {
  it('D4.5b: are aborted after RUN_RESUME_SECS with their model call, and only known by their record from then on', async () => {
    const product = await startProduct({ RUN_RESUME_SECS: '1' })
    try {
      product.model.answer([{ text: 'hi' }, { hang: true }])
      const stream = await product.run({ prompt: 'hi' })
      await stream.until('text_delta')
      stream.leave()
      await product.model.requests.at(-1)?.closedByClient
      const read = async () => (await product.call('GET', `/runs/${stream.runId}`)).body
      const isCancelled = async () => ((await read()) as { code?: string }).code === 'cancelled'
      if (form === 'standalone') await until(isCancelled, { what: 'its record' })
      else expect(await read(), 'without a store').to.have.nested.property('error.type', 'not_found_error')
    } finally {
      await product.close()
    }
  })

  it('D1.3 RUNS_PER_WORKER: when all workers are full, the next run is 429 with Retry-After', async () => {
    const product = await startProduct({ RUNS_PER_WORKER: '1' })
    try {
      const streams: EventStream[] = []
      for (let i = 0; i < product.workerCount; i++) {
        product.model.answer([{ text: 'hi' }, { hang: true }])
        const stream = await product.run({ prompt: 'hi' })
        await stream.until('text_delta')
        streams.push(stream)
      }
      const { status, headers } = await product.call('POST', '/agent/run', { prompt: 'hi' })
      expect(status).to.equal(429)
      expect(Number(headers.get('retry-after'))).to.be.at.least(1)
      for (const stream of streams) {
        await product.call('DELETE', `/runs/${stream.runId}`)
        await stream.all()
      }
    } finally {
      await product.close()
    }
  })
})
