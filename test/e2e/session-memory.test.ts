import { expect } from 'chai'
import { inStandaloneForm, type Product, useProduct } from '../support/product.ts'

inStandaloneForm('the memory of a session', (startProduct) => {
  const product = useProduct(startProduct)

  async function say(session: string, prompt: string, ...answers: Parameters<Product['model']['answer']>) {
    product.model.answer(...answers)
    return (await product.stream(`/sessions/${session}/messages`, { prompt })).all()
  }
  const resultOf = (frames: Awaited<ReturnType<typeof say>>) =>
    frames.find(({ event }) => event === 'tool_result')?.data
  /** The messages of the model request before the last `back - 1`. */
  const messagesOf = (back: number) => JSON.stringify(product.model.requests.at(-back)?.body['messages'])

  it('D5.3: Dream reads the conversation in a sub-agent, and later messages start with the memory entries it kept', async () => {
    await product.call('POST', '/sessions', { session_id: 'dreamer' })
    await say('dreamer', 'my boat is called Argo', 'a fine name')
    const frames = await say(
      'dreamer',
      'dream now',
      [{ tool: 'Dream', input: {} }],
      'Here:\n- The boat is called Argo.',
      'done',
    )
    expect(messagesOf(2))
      .to.include(String.raw`{\"user\":\"my boat is called Argo`)
      .and.include(String.raw`{\"assistant\":\"a fine name`)
    expect(product.model.requests.at(-2)?.body['tools'] ?? []).to.deep.equal([])
    expect(resultOf(frames)).to.deep.include({
      is_error: false,
      output: 'Kept 1 memory entries:\n- The boat is called Argo.',
    })
    await say('dreamer', 'what is it called?', 'Argo')
    expect(messagesOf(1)).to.include(String.raw`{\"memory\":\"The boat is called Argo.\"}`)
    expect((await product.call('GET', '/sessions/dreamer')).body).to.include({ message_count: 7 })
  })

  it('D5.3: a Dream that finds nothing, and one in a run without a history, are errors that the model reads', async () => {
    await product.call('POST', '/sessions', { session_id: 'blank' })
    expect(resultOf(await say('blank', 'dream', [{ tool: 'Dream' }], 'There is nothing.', 'ok'))).to.deep.include({
      is_error: true,
      output: 'The dream found nothing to keep.',
    })
    product.model.answer([{ tool: 'Dream' }], 'ok')
    const frames = await (await product.run({ prompt: 'dream' })).all()
    expect(resultOf(frames)?.['output']).to.match(/belongs to no session and no customer/)
  })
})
