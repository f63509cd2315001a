import { expect } from 'chai'
import type { LedgerPage } from '../../shared/agent/customers/store/ledger.ts'
import { useMongo } from '../support/mongo.ts'
import { inBothForms, useProduct } from '../support/product.ts'

inBothForms('customers', (startProduct, form) => {
  const mongo = form === 'cluster' ? useMongo() : undefined
  const product = useProduct(() =>
    startProduct({
      ...mongo?.env,
      CUSTOMER_HISTORY_ENTRIES: '3',
      CUSTOMER_HISTORY_CHARS: '400',
    }),
  )

  async function ask(customer_id: string, prompt: string, answer: string) {
    product.model.answer(answer)
    const stream = await product.run({ prompt, customer_id })
    return { frames: await stream.all(), runId: stream.runId }
  }
  const ledger = async (customer: string, query = '') =>
    (await product.call('GET', `/customers/${encodeURIComponent(customer)}/ledger${query}`)).body as LedgerPage
  /** The messages of the last model request, as JSON. */
  const lastMessages = () => JSON.stringify(product.model.requests.at(-1)?.body['messages'])

  it('api.md Per-customer line: the first run starts with the first-contact placeholder, the next with the history', async () => {
    await ask('c-1', 'my name is Ada', 'hello Ada')
    expect(lastMessages()).to.match(/first contact/)
    await ask('c-1', 'who am I?', 'Ada')
    expect(lastMessages())
      .to.include('my name is Ada')
      .and.include('hello Ada')
      .and.not.match(/first contact/)
    await ask('c-2', 'and me?', 'nobody')
    expect(lastMessages()).to.not.include('Ada')
  })

  it('D4.14: prompt and answer are on the ledger when done arrives; the list is newest first, in pages', async () => {
    const runs = []
    for (const n of [1, 2, 3]) runs.push(await ask('Müller & Söhne/7', `question ${n}`, `answer ${n}`))
    const { entries, next_cursor } = await ledger('Müller & Söhne/7', '?limit=2')
    expect(entries.map(({ seq, input, output }) => [seq, input, output])).to.deep.equal([
      [3, 'question 3', 'answer 3'],
      [2, 'question 2', 'answer 2'],
    ])
    expect(entries[0]?.run_id).to.equal(runs[2]?.runId)
    expect(entries[0]?.timestamp).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const rest = await ledger('Müller & Söhne/7', `?limit=2&cursor=${next_cursor}`)
    expect(rest.entries.map(({ seq }) => seq)).to.deep.equal([1])
    expect(rest.next_cursor).to.equal(null)
    expect(await ledger('nobody')).to.deep.equal({ entries: [], next_cursor: null })
  })

  it('D1.3 CUSTOMER_HISTORY_ENTRIES, CUSTOMER_HISTORY_CHARS: the background holds only the last entries, cut to the limit', async () => {
    for (const n of [1, 2, 3, 4]) await ask('c-3', `question-${n}`, `answer-${n}`)
    await ask('c-3', 'next', 'y'.repeat(900))
    expect(lastMessages()).to.include('question-4').and.include('question-2').and.not.include('question-1')
    await ask('c-3', 'last', 'ok')
    const background = lastMessages().match(/<customer_background>.*<\/customer_background>/)?.[0] ?? ''
    expect(background.match(/y+/)?.[0].length).to.be.within(350, 400)
  })

  it('D5.3: Dream distils the line into memory entries, which later runs start with', async () => {
    await ask('c-6', 'I only drink tea', 'noted')
    product.model.answer(
      [{ tool: 'Dream', input: { focus: 'drinks' } }],
      '- The customer drinks tea.\n- They said so once.',
      'dreamt',
    )
    const frames = await (await product.run({ prompt: 'dream', customer_id: 'c-6' })).all()
    const result = frames.find(({ event }) => event === 'tool_result')?.data
    expect(result).to.include({ is_error: false })
    expect(result?.['output']).to.include('The customer drinks tea.')
    await ask('c-6', 'what do I drink?', 'tea')
    expect(lastMessages()).to.include(String.raw`{\"memory\":\"The customer drinks tea.\"}`)
  })
})
