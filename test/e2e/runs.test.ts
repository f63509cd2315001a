import { expect } from 'chai'
import { inBothForms, useProduct } from '../support/product.ts'
import { until } from '../support/until.ts'

inBothForms('runs', (startProduct, form) => {
  const product = useProduct(startProduct)

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
})
