import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import type { JsonObject } from '../../shared/kernel/events.ts'
import { bodyOf, type Operation, operationsOf } from '../platform/api/operations.ts'
import { apiDocument } from '../support/api-document.ts'
import { startStandalone, useProduct } from '../support/product.ts'

const LONG = 'x'.repeat(5_000)
const MOST = 200

const document = await apiDocument()
const operations = operationsOf(document)
const HEADERS = [
  'Idempotency-Key',
  'Last-Event-ID',
  'Accept',
  'Content-Type',
  'Content-Encoding',
  'Range',
  'traceparent',
]

const concrete = (path: string, of: (name: string) => string = () => 'a') =>
  path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => of(name))

/** The same value with `change` applied at one place, for every place in it. */
function* variants(value: unknown): Generator {
  yield LONG
  if (typeof value === 'string') yield `http://${LONG}.example/${LONG}`
  if (typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) {
    yield [...value, LONG]
    for (const [i, item] of value.entries()) for (const inner of variants(item)) yield value.with(i, inner)
    return
  }
  yield { ...value, [LONG]: 1 }
  for (const [key, inner] of Object.entries(value)) {
    const { [key]: _left, ...rest } = value as JsonObject
    yield { ...rest, [LONG]: inner }
    for (const changed of variants(inner)) yield { ...value, [key]: changed }
  }
}

const OBJECT = { type: 'object' }
const property = (schema: object) => ({ type: 'object', properties: { [LONG]: schema } })

/** Definitions that are stored, and then fail where they are compiled. */
const DEFINITIONS: object[] = [
  { input_schema: { ...OBJECT, $ref: `#/$defs/${LONG}` } },
  { input_schema: { ...OBJECT, $ref: `http://${LONG}` } },
  { input_schema: { ...OBJECT, $schema: LONG } },
  { input_schema: { ...OBJECT, pattern: `(?=${LONG}` } },
  { input_schema: { ...OBJECT, format: LONG, patternProperties: { [`(?=${LONG})`]: {} } } },
  { input_schema: property({ type: LONG }) },
  { input_schema: property({ [LONG]: 1, minLength: LONG }) },
  { input_schema: { ...OBJECT, $defs: { [LONG]: { $anchor: LONG, $dynamicRef: LONG } } } },
  { tools: [LONG.slice(0, 256)] },
  { system_prompt_template: `{{${LONG}}}` },
  { system_prompt_template: `{{.input.${LONG}}}` },
  { user_prompt_template: `{{.sub_outputs.${LONG}.a}}` },
  { user_prompt_template: `{{.${LONG}}}` },
]

/** Schemas that refuse the input `{[LONG]: LONG}`, and quote it or themselves. */
const STRICT: object[] = [
  { ...OBJECT, additionalProperties: false },
  property({ type: 'number' }),
  property({ const: LONG.slice(1) }),
  property({ enum: [LONG.slice(1), LONG.slice(2)] }),
  property({ pattern: '^y{3000}$'.replace('3000', '300') }),
  { ...OBJECT, propertyNames: { const: LONG.slice(1) } },
  { ...OBJECT, required: [LONG.slice(1)] },
  { ...OBJECT, dependentRequired: { [LONG]: [LONG.slice(1)] } },
  { ...OBJECT, properties: { [LONG.slice(1)]: {} }, unevaluatedProperties: false },
]

const step = (id: string, ...after: string[]) => ({ id, prompt: 'x', depends_on: after })
const ids = Array.from({ length: 200 }, (_, i) => String(i).padStart(128, 'x'))

describe('what a message repeats of a request', () => {
  const product = useProduct(() => startStandalone({ MASTER_KEY: randomBytes(32).toString('base64') }))
  before(async () => {
    await product.call('PUT', '/config/instances/a', {
      type: 'openai-compatible',
      url: 'https://models.example.com/v1',
      key: 'k'.repeat(20),
    })
  })

  let refusals = 0

  async function send(
    method: string,
    path: string,
    { body, headers = {} }: { body?: unknown; headers?: Record<string, string> },
  ) {
    const isForm = body instanceof FormData
    const type = body !== undefined && !isForm && { 'content-type': 'application/json' }
    const response = await fetch(product.url + path, {
      method,
      headers: { ...type, ...headers },
      signal: AbortSignal.timeout(10_000),
      ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
    })
    if (response.status < 400) {
      await response.body?.cancel()
      return
    }
    refusals++
    const text = await response.text()
    const repeated = Math.max(0, ...Array.from(text.matchAll(/x{20,}/g), ([run]) => run.length))
    expect(repeated, `${method} ${path.slice(0, 80)}: ${text.slice(0, 600)}`).to.be.at.most(MOST)
    expect(text.length, `${method} ${path.slice(0, 80)}: ${text.slice(0, 600)}`).to.be.at.most(2_000)
  }

  const examplesOf = ({ operation }: Operation) => bodyOf(operation)?.examples ?? []

  it('is at most 200 characters of a path, a query parameter or a header of any operation', async () => {
    for (const [i, { method, path, parameters }] of operations.entries()) {
      if (path.includes('{'))
        await send(
          method,
          concrete(path, () => LONG),
          method === 'PUT' ? { body: {} } : {},
        )
      for (const { name, in: place } of parameters)
        if (place === 'query') await send(method, `${concrete(path)}?${String(name)}=${LONG}`, {})
      // What one middleware reads for all operations is sent to a seventh of them.
      const own = parameters.filter((each) => each['in'] === 'header').map((each) => String(each['name']))
      for (const name of new Set([...own, HEADERS[i % HEADERS.length] ?? '']))
        await send(method, concrete(path), { headers: { [name]: LONG } })
      await send(method, `${concrete(path)}?${LONG}=1`, {})
      await send(method, `${concrete(path)}/${LONG}`, {})
    }
    await send(LONG.slice(0, 300), '/tools', {})
    expect(refusals).to.be.greaterThan(300)
  })

  it('is at most 200 characters of any field of a body, and of any name of a field', async () => {
    const from = refusals
    for (const operation of operations)
      for (const example of examplesOf(operation))
        for (const body of variants(example)) await send(operation.method, concrete(operation.path), { body })
    expect(refusals - from).to.be.greaterThan(150)
  })

  it('is at most 200 characters of a flow’s definition, and of its input', async () => {
    const good = { input_schema: OBJECT, output_schema: OBJECT, model: 'm' }
    for (const [i, definition] of DEFINITIONS.entries()) {
      await send('PUT', `/flows/long-${i}`, { body: { ...good, ...definition } })
      await send('POST', `/flows/long-${i}/publish`, {})
    }
    const from = refusals
    for (const [i, input_schema] of STRICT.entries()) {
      await product.call('PUT', `/flows/strict-${i}`, { ...good, input_schema })
      expect((await product.call('POST', `/flows/strict-${i}/publish`)).status, String(i)).to.equal(200)
      await send('POST', `/flows/strict-${i}/run`, { body: { provider_instance: 'a', input: { [LONG]: LONG } } })
    }
    expect(refusals - from).to.equal(STRICT.length)
  })

  it('is at most 200 characters of the ids and paths of a plan, however many steps a circle has', async () => {
    const circle = ids.map((id, i) => step(id, ids[(i + 1) % ids.length] ?? ''))
    for (const steps of [
      circle,
      [step('a', LONG)],
      [step(ids[0] ?? '', ids[1] ?? '')],
      [step(ids[0] ?? '', ids[0] ?? '')],
      [{ ...step('a'), writes: [`/${LONG}`] }],
      [
        { ...step('a'), writes: [LONG] },
        { ...step('b'), writes: [LONG] },
      ],
    ])
      await send('POST', '/plans/submit', { body: { steps, parallel: true } })
  })

  it('is at most 200 characters of the fields of an upload', async () => {
    for (const [name, value] of [
      ['provider_instance', LONG],
      ['provider_instance', 'a'],
      [LONG, 'a'],
    ] as const) {
      const form = new FormData()
      form.append(name, value)
      form.append('model', LONG)
      form.append('file', new Blob(['x']), LONG)
      await send('POST', '/audio/transcriptions', { body: form })
    }
  })
})
