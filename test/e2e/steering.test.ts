import { expect } from 'chai'
import type { EventStream } from '../support/event-stream.ts'
import { inBothForms, useProduct } from '../support/product.ts'

inBothForms('a run that is told something while it is at work', (startProduct) => {
  const product = useProduct(startProduct)

  const steer = (runId: string, prompt: unknown, key?: string) =>
    product.call('POST', `/runs/${runId}/steer`, { prompt }, key === undefined ? {} : { 'Idempotency-Key': key })
  /** Starts a run whose model gives its first answer when `answer` is called. */
  async function held(...later: string[]): Promise<{ stream: EventStream; answer(): void }> {
    const { promise, resolve } = Promise.withResolvers<void>()
    product.model.answer([{ text: 'I begin.' }, { hold: promise }], ...later)
    const stream = await product.run({ prompt: 'begin' })
    await stream.until('text_delta')
    return { stream, answer: () => resolve() }
  }
  const lastTexts = () => {
    const messages = product.model.requests.at(-1)?.body['messages'] as { role: string; content: string }[] | undefined
    return messages?.map(({ role, content }) => `${role}: ${content}`) ?? []
  }

  it('D49.1, D49.2: a text that comes with the last answer is read in one more turn, once, whoever sends it again', async () => {
    const { stream, answer } = await held('I stop.')
    const [first, again] = await Promise.all([
      steer(stream.runId, 'Stop there.', 'k1'),
      steer(stream.runId, 'Stop there.', 'k1'),
    ])
    expect([first.status, again.status]).to.deep.equal([202, 202])
    expect(again.body).to.deep.equal(first.body)
    expect((await steer(stream.runId, 'Something else', 'k1')).status).to.equal(409)
    expect((await steer(stream.runId, 'And hurry.')).status).to.equal(202)
    answer()
    const frames = await stream.all()
    const asked = ['user: begin', 'assistant: I begin.', 'user: Stop there.\n\nAnd hurry.'] // The wire joins messages of one role.
    expect(lastTexts().slice(-3)).to.deep.equal(asked)
    const steered = frames.filter(({ event }) => event === 'steered').map(({ data }) => data)
    expect(steered.map(({ text }) => text)).to.deep.equal(['Stop there.', 'And hurry.'])
    expect(steered[0]).to.include({ id: (first.body as { id: string }).id, by: 'anonymous' })
    expect(frames.at(-1)?.data).to.include({ turn_count: 2 })
    const replayed = await steer(stream.runId, 'Stop there.', 'k1')
    expect([replayed.status, replayed.headers.get('idempotency-replayed')]).to.deep.equal([202, 'true'])
    expect((await steer(stream.runId, 'Too late')).status).to.equal(409)
  })

  it('D49.1, D49.4: behind the result of a tool that waits for a permission, on the branch of the session', async () => {
    product.model.answer([{ tool: 'Write', input: { path: 'a.txt', content: 'a' } }], 'done')
    const { session_id: id } = (await product.call('POST', '/sessions')).body as { session_id: string }
    const stream = await product.stream(`/sessions/${id}/messages`, { prompt: 'write' })
    const { data } = await stream.until('permission_request')
    expect((await steer(stream.runId, 'Then read it.')).status).to.equal(202)
    await product.call('POST', `/sessions/${id}/permissions/${data['id']}`, { allow: true })
    await stream.all()
    const { messages } = (await product.call('GET', `/sessions/${id}/messages`)).body as {
      messages: { role: string; run_id: string; client_id?: string; blocks: { text?: string }[] }[]
    }
    expect(messages.map(({ role }) => role)).to.deep.equal(['user', 'assistant', 'tool', 'user', 'assistant'])
    expect(messages[3]).to.deep.include({ run_id: stream.runId, blocks: [{ type: 'text', text: 'Then read it.' }] })
    expect(messages[3]?.client_id).to.match(/^steer_[0-9a-f]{32}$/)
  })

  it('D49.1: a message that waits for its turn reads it behind its prompt', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    product.model.answer([{ text: 'first' }, { hold: promise }], 'second')
    const { session_id: id } = (await product.call('POST', '/sessions')).body as { session_id: string }
    const busy = await product.stream(`/sessions/${id}/messages`, { prompt: 'one' })
    await busy.until('text_delta')
    const waiting = await product.stream(`/sessions/${id}/messages`, { prompt: 'two' })
    expect((await steer(waiting.runId, 'in short')).status).to.equal(202)
    resolve()
    await busy.all()
    await waiting.all()
    expect(lastTexts().at(-1)).to.equal('user: two\n\nin short')
  })
})
