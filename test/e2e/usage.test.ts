import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { useMongo } from '../support/mongo.ts'
import { inBothForms, useProduct } from '../support/product.ts'
import { until } from '../support/until.ts'

type Row = {
  bucket: string
  key: string | null
  runs: number
  failed: number
  input_tokens: number
  keys?: (string | null)[]
} & Record<'output_tokens' | 'cost_usd' | 'p50_ms' | 'p95_ms', number>

const DEFINITION = { model: 'test-model', input_schema: { type: 'object' }, output_schema: { type: 'object' } }

inBothForms('the usage of a tenant', (startProduct, form) => {
  const mongo = form === 'cluster' ? useMongo() : undefined
  const product = useProduct(() =>
    startProduct({
      ...mongo?.env,
      MASTER_KEY: randomBytes(32).toString('base64'),
      ALLOW_PRIVATE_URLS: 'true',
      MODEL_PRICES: '{"test-model": {"input": 1, "output": 2}}',
    }),
  )

  const rowsBy = async (by: string, query = '') =>
    ((await product.call('GET', `/usage?by=${by}${query}`)).body as { rows: Row[] }).rows
  const sum = (rows: readonly Row[], name: 'runs' | 'input_tokens' | 'cost_usd') =>
    rows.map((row) => row[name]).reduce((all, each) => all + each, 0)
  const counted = async (by: string, runs: number, query = '') =>
    until(
      async () => {
        const rows = await rowsBy(by, query)
        return sum(rows, 'runs') === runs && rows
      },
      { what: `${runs} runs to be counted by ${by}`, everyMs: 100 },
    )
  const post = async (path: string, body?: unknown) => {
    const { status, text } = await product.call('POST', path, body)
    expect(status, text).to.be.within(200, 202)
    return JSON.parse(text) as { id: string }
  }

  it('D21: runs, messages, flows and steps of plans count when they have ended, in every process, with what they have used', async () => {
    product.model.otherwise(() => 'fine')
    const customers = ['c-1', 'c-1', 'c-2', '']
    const ends = await Promise.all(
      customers.map(
        async (customer_id) => (await (await product.run({ prompt: 'hi', customer_id })).all()).at(-1)?.data,
      ),
    )
    await product.call('POST', '/sessions', { session_id: 's-1' })
    await (await product.stream('/sessions/s-1/messages', { prompt: 'hi' })).all()
    product.model.answer({ status: 400 })
    expect((await (await product.run({ prompt: 'hi' })).all()).at(-1)?.event).to.equal('error')
    await product.call('PUT', '/config/instances/main', { type: 'openai-compatible', url: `${product.model.url}/v1` })
    await product.call('PUT', '/flows/one', DEFINITION)
    await post('/flows/one/publish')
    product.model.answer('{}')
    await post('/flows/one/run', { input: {}, provider_instance: 'main' })
    const { id } = await post('/plans/submit', {
      steps: [
        { id: 'a', prompt: 'a' },
        { id: 'b', prompt: 'b' },
      ],
    })
    await (await product.stream(`/plans/${id}/events`)).all()

    const kinds = await counted('kind', 9)
    expect(kinds.map(({ key, runs, failed }) => [key, runs, failed])).to.deep.equal([
      ['flow', 1, 0],
      ['message', 1, 0],
      ['run', 5, 1],
      ['step', 2, 0],
    ])
    const models = await counted('model', 9)
    expect(models.map(({ key }) => key)).to.deep.equal(['test-model'])
    expect(sum(models, 'input_tokens')).to.equal(sum(kinds, 'input_tokens'))
    const shown = async (by: string) => (await counted(by, 9)).map(({ key, runs }) => [key, runs])
    expect(await shown('flow')).to.deep.equal([
      [null, 8],
      ['one', 1],
    ])
    expect(await shown('customer')).to.deep.equal([
      [null, 6],
      ['c-1', 2],
      ['c-2', 1],
    ])
    expect(await shown('subject')).to.deep.equal([['anonymous', 9]])
    const pairs = (await counted('customer,kind', 9)).map(({ keys = [], runs }) => [...keys, runs])
    expect(pairs, 'D21e').to.deep.equal([
      [null, 'flow', 1],
      [null, 'message', 1],
      [null, 'run', 2],
      [null, 'step', 2],
      ['c-1', 'run', 2],
      ['c-2', 'run', 1],
    ])
    const [run] = kinds.filter(({ key }) => key === 'run')
    const input = ends.map((data) => Number(data?.['total_input_tokens'])).reduce((all, each) => all + each, 0)
    expect(run?.input_tokens).to.equal(input)
    expect(run?.cost_usd).to.be.greaterThan(0)
    expect(run?.p95_ms).to.be.at.least(Number(run?.p50_ms))
    expect(sum(await counted('kind', 9, '&bucket=hour'), 'cost_usd')).to.be.closeTo(sum(kinds, 'cost_usd'), 1e-9)
  })
})
