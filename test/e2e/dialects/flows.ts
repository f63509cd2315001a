import { expect } from 'chai'
import OpenAI from 'openai'
import { DEFINITION, GOOD } from '../../support/flows.ts'
import { until } from '../../support/until.ts'
import type { RunningProduct } from './dialect-product.ts'

/** A published flow as the `model` of a chat completion. It makes the scripted model the route `main` of the tenant. */
export function flowTests(product: RunningProduct): void {
  const client = () => new OpenAI({ baseURL: `${product().url}/openai/v1`, apiKey: 'none', maxRetries: 0 })
  const request = (content: string, model = 'flow:answers') => ({
    ...{ model, messages: [{ role: 'user' as const, content }] },
  })
  const complete = (content: string, model?: string) => client().chat.completions.create(request(content, model))
  const stream = (content: string, model?: string) =>
    client().chat.completions.create({
      ...request(content, model),
      ...{ stream: true, stream_options: { include_usage: true } },
    })
  const refusalOf = (work: Promise<unknown>) =>
    work.then(
      () => undefined,
      (cause: InstanceType<typeof OpenAI.APIError>) => cause,
    )
  const both = (content: string, model?: string) => [complete(content, model), stream(content, model)].map(refusalOf)

  before(async () => {
    const instance = { type: 'openai-compatible', url: product().model.url, key: 'sk-1' }
    for (const [method, path, body] of [
      ['PUT', '/config/instances/scripted', instance],
      ['PUT', '/config/engine', { routing: { main: { instance: 'scripted', model: 'm-1' } } }],
      ['PUT', '/flows/answers', DEFINITION],
      ['POST', '/flows/answers/publish', undefined],
    ] as const) {
      const { status, text } = await product().call(method, path, body)
      expect(status, text).to.equal(200)
    }
    const isRouted = async () => (await client().models.list()).data.some(({ id }) => id === 'm-1')
    await until(isRouted, { what: 'the gateway to know the route' })
  })

  it('is among the models, takes JSON or a text, and answers with JSON that fits its schema, whole or as a stream', async () => {
    product().model.otherwise(() => GOOD)
    expect((await client().models.list()).data.map(({ id }) => id)).to.include('flow:answers')
    for (const content of ['{"text": "hello"}', 'hello']) {
      const whole = await complete(content)
      expect(whole).to.include({ object: 'chat.completion', model: 'flow:answers' })
      expect(JSON.parse(whole.choices[0]?.message.content ?? '')).to.deep.equal({ answer: 'yes' })
      let [text, tokens, finish] = ['', 0, '']
      for await (const { choices, usage } of await stream(content)) {
        text += choices[0]?.delta.content ?? ''
        tokens += usage?.total_tokens ?? 0
        finish = choices[0]?.finish_reason ?? finish
      }
      expect([JSON.parse(text), finish]).to.deep.equal([{ answer: 'yes' }, 'stop'])
      expect(tokens).to.be.above(0)
    }
    const inputs = product().model.requests.map(({ body }) => JSON.stringify(body))
    expect(inputs.filter((body) => body.includes('hello'))).to.have.length(4)
  })

  it('refuses an input that does not fit its schema, and an unknown flow, before anything is sent', async () => {
    const count = product().model.requests.length
    for (const refused of both('{"other": 1}'))
      expect(await refused).to.include({ status: 400, type: 'invalid_request_error' })
    for (const refused of both('hello', 'flow:nobody'))
      expect(await refused).to.include({ status: 404, type: 'not_found_error' })
    expect(product().model.requests).to.have.length(count)
  })

  it('an output that does not fit, and a provider that refuses, are errors in both ways to read', async () => {
    const broken = async (content: string) => {
      const chunks = await stream(content)
      return refusalOf(
        (async () => {
          for await (const _ of chunks);
        })(),
      )
    }
    product().model.otherwise(() => '{"answer": 7}')
    expect(await refusalOf(complete('hello'))).to.include({ status: 502, type: 'upstream_error' })
    expect((await broken('hello'))?.message).to.include('does not fit its schema')
    product().model.otherwise(() => ({ steps: [{ error: { status: 400 } }] }))
    expect(await refusalOf(complete('hello'))).to.include({ status: 502, code: 'provider_rejected' })
    expect(await broken('hello')).to.include({ code: 'provider_rejected' })
  })
}
