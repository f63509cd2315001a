import { expect } from 'chai'
import { RUN_STATUSES } from '../../../shared/cluster/commands/runs.ts'
import { createBodies } from '../../../shared/platform/api/bodies.ts'
import { type ApiDocument, readBodySchemas, readDocument, type Schema } from '../../../shared/platform/api/document.ts'
import { DISPATCH_STATUSES, FLOW_STATES } from '../../../shared/work/flows/port.ts'
import { apiContract, apiDocument } from '../../support/api-document.ts'
import { at, examplesOf, operationsOf, referencesOf } from './operations.ts'

describe('the API description', () => {
  let document: ApiDocument
  before(async () => {
    document = await apiDocument()
  })

  it('is OpenAPI 3.1 with the base path as its server', async () => {
    const { openapi, servers } = await readDocument({ basePath: '/api/v1', authentication: 'none' })
    expect(openapi).to.match(/^3\.1\./)
    expect(servers).to.deep.equal([{ url: '/api/v1' }])
  })

  it('contains everything that it refers to', async () => {
    const references = referencesOf(document)
    expect(references.length).to.be.greaterThan(100)
    expect(references.filter((pointer) => at(document, pointer) === undefined)).to.deep.equal([])
  })

  it('has valid JSON Schema 2020-12 schemas, and every example matches its schema', async () => {
    const contract = await apiContract()
    for (const name of Object.keys(document.components.schemas)) {
      expect(contract.problemsOf({ $ref: `#/components/schemas/${name}` }, undefined), name).to.not.equal('')
    }
    const examples = examplesOf(document)
    expect(examples.length).to.be.greaterThan(20)
    for (const { schema, value, where } of examples) expect(contract.problemsOf(schema, value), where).to.equal('')
  })

  it('gives the constants of all enums different names, since a Go client has them in one package', async () => {
    const { components } = document
    const names = Object.entries(components.schemas).flatMap(([schema, { enum: values, ...rest }]) => {
      if (!values) return []
      const constants = rest['x-enum-varnames'] ?? values.map((value) => String(value).toUpperCase())
      expect(constants, schema).to.have.lengthOf(values.length)
      return constants
    })
    expect(names.filter((name, i) => names.indexOf(name) !== i)).to.deep.equal([])
  })

  it('has no type of several but with null, which stops oapi-codegen', () => {
    const lists = nodesOf(document).flatMap(({ type }) => (Array.isArray(type) ? [type] : []))
    expect(lists).not.to.be.empty
    expect(lists.filter((types) => types.length !== 2 || types[1] !== 'null')).to.deep.equal([])
  })

  it('names no schema as oapi-codegen names the answer of an operation, unless it says another name for Go', () => {
    const answers = operationsOf(document).map(({ operation }) => `${operation['operationId']}Response`.toLowerCase())
    expect(answers).to.include('listrunsresponse')
    const names = Object.entries(document.components.schemas).map(([name, schema]) => schema['x-go-name'] ?? name)
    expect(names.filter((name) => answers.includes(name.toLowerCase()))).to.deep.equal([])
    expect(names.filter((name, i) => names.indexOf(name) !== i)).to.deep.equal([])
  })

  it('has no constant but texts: of others openapi-generator writes Java, and openapi-python-client Python, that is wrong', () => {
    const constants = nodesOf(document).filter((node) => 'const' in node)
    expect(constants).to.not.be.empty
    expect(constants.filter((node) => typeof node['const'] !== 'string')).to.deep.equal([])
  })

  it('has no choice between a map and something else, for which openapi-generator writes Java that does not compile', () => {
    const { schemas } = document.components
    const isMap = (schema: Schema): boolean => {
      const { $ref, type, properties, additionalProperties } = schema
      if ($ref) return isMap(at(document, $ref) as Schema)
      if ('allOf' in schema) return false // A class.
      return type === 'object' && !properties && !('patternProperties' in schema && additionalProperties === undefined)
    }
    const choices = nodesOf(document).flatMap(({ anyOf, oneOf }) => [anyOf ?? [], oneOf ?? []] as Schema[][])
    const others = choices
      .map((choice) => choice.filter(({ type }) => type !== 'null'))
      .filter((each) => each.length > 1)
    expect(others.length).to.be.greaterThan(3)
    expect(others.filter((choice) => choice.some((each) => isMap(each) || 'patternProperties' in each))).to.deep.equal(
      [],
    )
    expect(isMap(schemas['JsonObject'] as Schema), 'a map').to.equal(true)
  })

  it('writes a text or a number that may be null as one list of types: openapi-generator writes Java that refuses the null of a choice', () => {
    const choices = nodesOf(document).flatMap(({ anyOf, oneOf }) => [anyOf ?? [], oneOf ?? []] as Schema[][])
    const nullable = choices.filter((choice) => choice.some(({ type }) => type === 'null') && choice.length === 2)
    expect(nullable.length).to.be.greaterThan(3)
    const isSimple = ({ $ref, type, enum: values }: Schema): boolean =>
      $ref ? isSimple(at(document, $ref) as Schema) : type !== 'object' && type !== 'null' && !values
    expect(nullable.filter((choice) => choice.some(isSimple))).to.deep.equal([])
  })

  it('has no map of any values in a body that may be left out: openapi-generator writes Java that sends it as {}', () => {
    const isFree = ({ $ref, additionalProperties }: Schema): boolean =>
      $ref ? isFree(at(document, $ref) as Schema) : additionalProperties === true
    const bodies = Object.entries(document.components.schemas).filter(([name]) => name.endsWith('Request'))
    const sent = bodies.flatMap(([body, { properties = {}, ...rest }]) =>
      Object.entries(properties).flatMap(([name, field]) =>
        !('required' in rest && (rest.required as string[]).includes(name)) && isFree(field) ? [`${body}.${name}`] : [],
      ),
    )
    expect(sent).to.deep.equal([])
  })

  it('contains no invisible characters, which Go and JavaScript refuse in the source of a client', async () => {
    expect(JSON.stringify(document)).to.not.match(/[\u00a0\u2000-\u200f\u2028-\u202f\ufeff]/)
  })

  it('extends a schema with allOf only, since generators ignore the fields that stand beside a $ref', async () => {
    const { components } = document
    const extended = Object.entries(components.schemas).filter(([, { $ref, properties }]) => $ref && properties)
    expect(extended.map(([name]) => name)).to.deep.equal([])
  })

  it('says in words what a missing field of a body means: a TypeScript client must send a field with a default', async () => {
    const { components } = document
    const fields = Object.values(components.schemas).flatMap(({ properties = {} }) => Object.entries(properties))
    expect(fields.filter(([, field]) => 'default' in field).map(([name]) => name)).to.deep.equal([])
  })

  const streams: [string, string, number][] = [
    ['EventStream', 'EventFrame', 5],
    ['FlowEventStream', 'FlowEventFrame', 3],
    ['PlanEventStream', 'PlanEventFrame', 5],
  ]
  for (const [stream, frame, count] of streams) {
    it(`has an example of ${stream} that consists of the frames that it describes`, async () => {
      const { problemsOf } = await apiContract()
      const media = at(document, `#/components/responses/${stream}/content`) as Record<string, Record<string, unknown>>
      const { example, 'x-itemSchema': schema } = media['text/event-stream'] ?? {}
      expect(schema).to.deep.equal({ $ref: `#/components/schemas/${frame}` })
      const blocks = String(example).trim().split('\n\n').slice(1)
      expect(blocks).to.have.length(count)
      for (const block of blocks) {
        const [, id, event, data] = /^id: (\d+)\nevent: (\w+)\ndata: (.*)$/.exec(block) ?? []
        const sent = { id: Number(id), event, data: JSON.parse(data ?? '') }
        expect(problemsOf(schema as object, sent), block).to.equal('')
      }
    })
  }

  it('a schema that is read alone equals the one in the whole document', async () => {
    const { components } = document
    const bodies = Object.keys(components.schemas).filter((name) => name.endsWith('Request'))
    expect(bodies).to.include('RunRequest')
    for (const body of bodies) {
      const schemas = await readBodySchemas(body)
      const whole = new Set([body])
      for (const name of whole)
        for (const each of referencesOf(components.schemas[name])) whole.add(each.split('/').at(-1) ?? '')
      expect(Object.keys(schemas), body).to.have.members([...whole])
      for (const name of whole) expect(schemas[name], name).to.deep.equal(components.schemas[name])
    }
  })

  it('the schema of each JSON body has a name that ends in Request, by which the body checks find it', async () => {
    const { paths } = document
    const references = referencesOf(
      Object.values(paths).flatMap((operations) =>
        Object.values(operations).map((operation) => (operation as Record<string, unknown>)['requestBody']),
      ),
    )
    expect(references).not.to.be.empty
    for (const reference of references) expect(reference).to.match(/^#\/components\/schemas\/\w+(Request|Form)$/)
  })

  it('D4.5g, D6.2, D6.8: lists the states of runs, flows and dispatches', async () => {
    const { components } = document
    expect(components.schemas['RunStatus']).to.deep.include({ enum: [...RUN_STATUSES] })
    expect(components.schemas['FlowHead']?.properties?.['state']).to.deep.include({ enum: [...FLOW_STATES] })
    expect(components.schemas['DispatchStatus']).to.deep.include({ enum: [...DISPATCH_STATUSES] })
  })

  it('checking a body against an unknown schema throws an error that names it', async () => {
    const decoding = Promise.resolve(createBodies().decode('Nothing', new Uint8Array(0)))
    const failure = await decoding.catch((cause: Error) => cause.message)
    expect(failure).to.equal('openapi.yaml has no schema Nothing')
  })
})

/** Every object of the document, but those of its examples. */
function nodesOf(value: unknown): Record<string, unknown>[] {
  if (typeof value !== 'object' || value === null) return []
  const own = Array.isArray(value) ? [] : [value as Record<string, unknown>]
  const inner = Object.entries(value).filter(([name]) => name !== 'example' && name !== 'examples')
  return [...own, ...inner.flatMap(([, each]) => nodesOf(each))]
}
