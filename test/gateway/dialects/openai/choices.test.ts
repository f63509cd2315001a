import { expect } from 'chai'
import { readChoices } from '../../../../services/gateway/dialects/openai/choices.ts'
import { Fields } from '../../../../services/gateway/dialects/shared/fields.ts'
import { inPlaces } from '../../../../services/gateway/dialects/shared/places.ts'
import { invalidRequest } from '../../../../shared/kernel/errors.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'

const SCHEMA = { type: 'object' }
const CHAT = {
  schema: '/json_schema/schema',
  effort: '/reasoning_effort',
  tokens: ['max_completion_tokens', 'max_tokens'],
}

/** The choices of a chat completion; `refused` is the place that the check of the native fields refuses. */
function read(body: JsonObject, refused?: string) {
  const fields = new Fields(body)
  const format = fields.has('response_format') ? fields.object('response_format') : undefined
  return readChoices(fields, { ...CHAT, format }, async (_schema, value) => {
    if (refused !== undefined) throw invalidRequest('it is wrong', { param: refused })
    return value as never
  })
}

const paramOf = (work: Promise<unknown>) =>
  work.then(
    () => expect.fail('it was not refused'),
    (cause: { param?: string }) => cause.param,
  )

describe('the choices of a run in a request of OpenAI', () => {
  it('D42.6: have the native names', async () => {
    const { choices, ignored } = await read({
      ...{ temperature: 0, max_tokens: 5, max_completion_tokens: 7, reasoning_effort: 'low', metadata: { a: 'b' } },
      tool_choice: { type: 'function', function: { name: 'Read' } },
      response_format: { type: 'json_schema', json_schema: { name: 'n', strict: true, schema: SCHEMA } },
    })
    expect(choices).to.deep.equal({
      ...{ temperature: 0, max_output_tokens: 7, effort: 'low', metadata: { a: 'b' }, tool_choice: { name: 'Read' } },
      response_schema: SCHEMA,
    })
    expect(ignored).to.deep.equal([])
  })

  it('D42.6: an effort of another name is ignored by its place, and fields that are not set are nothing', async () => {
    const { choices, ignored } = await read({ reasoning_effort: 'minimal', temperature: null, tool_choice: 'auto' })
    expect([choices, ignored]).to.deep.equal([{ tool_choice: 'auto' }, ['/reasoning_effort']])
    expect((await read({ reasoning_effort: null })).ignored).to.deep.equal([])
  })

  it('D41.5: text is no schema, json_object is an object, and a format that is not known or not whole is refused', async () => {
    expect((await read({ response_format: { type: 'text' } })).choices).to.deep.equal({})
    const { choices } = await read({ response_format: { type: 'json_object' } })
    expect(choices.response_schema).to.deep.equal({ type: 'object' })
    for (const [format, param] of [
      [{ type: 'grammar' }, '/response_format/type'],
      [{ type: 'json_schema' }, '/response_format/json_schema'],
      [{ type: 'json_schema', json_schema: { name: 'n' } }, '/response_format/json_schema/schema'],
    ] as const)
      expect(await paramOf(read({ response_format: format }))).to.equal(param)
  })

  it('D41.1: a schema that cannot be used is refused at its place, before there is a session', async () => {
    const schema = { properties: { a: { $ref: 'https://example.com/a.json' } } }
    const response_format = { type: 'json_schema', json_schema: { schema } }
    expect(await paramOf(read({ response_format }))).to.equal('/response_format/json_schema/schema/properties/a/$ref')
  })

  it('D31.1: what is wrong is told by its place in the request, also by whoever starts the run', async () => {
    expect(await paramOf(read({ max_tokens: 0 }, '/max_output_tokens'))).to.equal('/max_tokens')
    const response_format = { type: 'json_schema', json_schema: { schema: SCHEMA } }
    const { places } = await read({ response_format })
    const start = inPlaces(places, () => Promise.reject(invalidRequest('no', { param: '/response_schema/items' })))
    expect(await paramOf(start)).to.equal('/response_format/json_schema/schema/items')
    const other = inPlaces(places, () => Promise.reject(invalidRequest('no', { param: '/prompt' })))
    expect(await paramOf(other)).to.equal('/prompt')
  })
})
