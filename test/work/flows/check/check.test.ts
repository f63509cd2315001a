import { expect } from 'chai'
import { notFound } from '../../../../shared/kernel/errors.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { createSchemaCheckers } from '../../../../shared/platform/schemas/checker.ts'
import { type CheckedBody, FlowChecks } from '../../../../shared/work/flows/check/check.ts'
import { createFlowCompiler } from '../../../../shared/work/flows/compile.ts'
import { readDefinition } from '../../../../shared/work/flows/definition.ts'
import type { Flow } from '../../../../shared/work/flows/port.ts'
import { BODY, refusalOf, TENANT } from '../setup.ts'

const textSchema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }
const LINES = { name: 'lines', prompt: 'Count {{.input.text}}', output_schema: textSchema }
const GOOD = { ...BODY, input_schema: textSchema }

const STORED: Flow = {
  name: 'triage',
  uid: 'flow_1',
  version: 1,
  state: 'draft',
  definition: readDefinition({ ...GOOD, system_prompt_template: 'Stored. {{.memory}}' }),
  created_at: '',
  updated_at: '',
  published_version: null,
  is_built_in: false,
  ignored_fields: ['/misspelled'],
}

describe('the check of a flow', () => {
  const checkers = createSchemaCheckers()
  after(() => checkers.close())
  const checks = new FlowChecks({
    library: {
      async get(_tenant, name) {
        if (name === STORED.name) return STORED
        throw notFound('there is no flow')
      },
    },
    memory: { promptText: async (_tenant, uid) => `the memory of ${uid}` },
    compile: createFlowCompiler({ checkers, tools: () => ['Read'] }),
    checkers,
  })
  const check = (body: CheckedBody, name = 'invoices') => checks.check(TENANT, name, body)
  const paramsOf = async (body: CheckedBody, name?: string) =>
    (await check(body, name)).problems.map(({ param }) => param)

  it('D26.1: names all problems at once, those of the fields and those that compiling finds', async () => {
    const body: JsonObject = {
      name: 'other',
      input_schema: textSchema,
      output_schema: { type: 'nope' },
      system_prompt_template: '{{.input.txt}}',
      user_prompt_template: 7,
      tools: ['Read', 'Nope', 1],
      model: '',
      sub_agents: [
        { ...LINES, prompt: undefined, provider_instance: 'a b', tools: 'Read' },
        { ...LINES, name: 'memory' },
        { ...LINES, name: '1' },
        'x',
      ],
      evolve: 'yes',
    }
    const { problems, prompt_preview } = await check(body)
    expect(problems.map(({ param }) => param)).to.deep.equal([
      '/name',
      '/user_prompt_template',
      '/tools/2',
      '/model',
      '/sub_agents/0/prompt',
      '/sub_agents/0/tools',
      '/sub_agents/0/provider_instance',
      '/sub_agents/2/name',
      '/sub_agents/3',
      '/evolve',
      '/tools/1',
      '/sub_agents/1/name',
      '/output_schema/type',
      '/system_prompt_template',
    ])
    for (const { param, message } of problems) expect(message, param).not.to.equal('')
    expect(prompt_preview).to.equal(null)
  })

  it('a wrong schema makes no reference into it wrong', async () => {
    const body = { ...GOOD, input_schema: 'x', system_prompt_template: '{{.input.any.thing}}', output_schema: null }
    expect(await paramsOf(body)).to.deep.equal(['/input_schema', '/output_schema'])
  })

  it('a definition that is too long is named, beside the problems of its fields', async () => {
    const title = 'x'.repeat(1_048_576)
    expect(await paramsOf({ ...GOOD, input_schema: { ...textSchema, title }, tools: 1, input: {} })).to.deep.equal([
      '/tools',
      '',
    ])
  })

  it('at most 100 problems are listed, and each is short', async () => {
    const tools = Array.from({ length: 128 }, () => 'x'.repeat(256))
    const { problems } = await check({ ...GOOD, tools })
    expect(problems).to.have.length(100)
    expect(problems[0]?.message.length).to.be.lessThan(460)
  })

  it('the names that a PUT refuses are problems: a built-in one, a reserved one, and one that differs from the path', async () => {
    expect(await paramsOf(GOOD, 'summarize')).to.deep.equal(['/name'])
    expect(await paramsOf(GOOD, 'tools')).to.deep.equal(['/name'])
    expect(await paramsOf({ ...GOOD, name: 'other' }, 'own')).to.deep.equal(['/name'])
    expect(await paramsOf({ ...GOOD, name: 'own' }, 'own')).to.deep.equal([])
  })

  it('D26.1: shows the prompts of all agents, with samples made from the schemas', async () => {
    const { problems, prompt_preview, warnings } = await check({
      ...GOOD,
      output_schema: { title: 'the end' },
      system_prompt_template: 'Sum up {{.sub_outputs.lines.text}} of {{.input.text}}',
      sub_agents: [LINES],
    })
    expect([problems, warnings]).to.deep.equal([[], []])
    expect(prompt_preview?.input).to.deep.equal({ text: 'demo text' })
    const [lines, main] = prompt_preview?.agents ?? []
    expect(lines).to.include({ agent: 'lines', user: '{"input":{"text":"demo text"}}' })
    expect(lines?.system).to.match(/^Count demo text\n[^]*JSON Schema/)
    expect(main).to.include({
      agent: 'main',
      user: '{"input":{"text":"demo text"},"sub_outputs":{"lines":{"text":"demo text"}}}',
    })
    expect(main?.system).to.match(/^Sum up demo text of demo text\n[^]*the end/)
  })

  it('an input of the request is shown in the prompts, and checked against the schema', async () => {
    const body = { ...GOOD, user_prompt_template: 'Read {{.input.text}}' }
    const { prompt_preview } = await check({ ...body, input: { text: 'a & b' } })
    expect(prompt_preview?.input).to.deep.equal({ text: 'a & b' })
    expect(prompt_preview?.agents[0]?.user).to.equal('Read a & b')
    const wrong = await check({ ...body, input: { text: 1 } })
    expect(wrong).to.deep.include({ prompt_preview: null })
    expect(wrong.problems).to.have.length(1)
    expect(wrong.problems[0]).to.have.property('param', '/input/text')
    expect(wrong.problems[0]?.message).to.match(/^input\.text must be/)
    expect(await paramsOf({ ...body, tools: 1, input: {} })).to.deep.equal(['/tools', '/input/text'])
    expect(await paramsOf({ ...body, input_schema: { type: 'nope' }, input: {} })).to.deep.equal(['/input_schema/type'])
  })

  it('an example in the schema is the sample', async () => {
    const input_schema = { ...textSchema, examples: [{ text: 'two chairs' }] }
    expect((await check({ ...GOOD, input_schema })).prompt_preview?.input).to.deep.equal({ text: 'two chairs' })
  })

  it('where no sample is found a warning says so: without an input there is no preview, without an output it shows nothing', async () => {
    const patterned = { ...textSchema, properties: { text: { type: 'string', pattern: '^[A-Z]{3}$' } } }
    const noInput = await check({ ...GOOD, input_schema: patterned })
    expect(noInput).to.deep.include({ problems: [], prompt_preview: null })
    expect(noInput.warnings).to.have.length(1)
    expect(noInput.warnings[0]).to.include({ code: 'no_sample', param: '/input_schema/properties/text' })
    const noOutput = await check({ ...GOOD, sub_agents: [{ ...LINES, output_schema: patterned }] })
    expect(noOutput.warnings.map(({ param }) => param)).to.deep.equal(['/sub_agents/0/output_schema/properties/text'])
    expect(noOutput.prompt_preview?.agents[1]?.user).to.equal('{"input":{"text":"demo text"},"sub_outputs":{}}')
  })

  it('a long prompt is cut in the preview', async () => {
    const { prompt_preview } = await check({ ...GOOD, input: { text: 'x'.repeat(30_000) } })
    expect(prompt_preview?.agents[0]?.user).to.match(/x\n\[cut\]$/)
    expect(prompt_preview?.agents[0]?.user.length).to.equal(20_006)
  })

  it('without a definition the stored flow is checked, with its memory and the fields that were ignored', async () => {
    const { problems, prompt_preview, warnings } = await check({ input: { text: 'hi' } }, 'triage')
    expect(problems).to.deep.equal([])
    expect(prompt_preview?.agents[0]?.system).to.match(/^Stored\. the memory of flow_1\n/)
    expect(prompt_preview?.agents[0]?.user).to.include('hi')
    expect(warnings.map(({ code, param }) => [code, param])).to.deep.equal([['ignored_field', '/misspelled']])
    expect(await refusalOf(check({}, 'unknown'))).to.include({ kind: 'not_found' })
  })

  it('a definition in the body is shown with the memory of the stored flow, if there is one', async () => {
    const body = { ...GOOD, system_prompt_template: 'New. {{.memory}}' }
    const systemOf = async (name: string) => (await check(body, name)).prompt_preview?.agents[0]?.system
    expect(await systemOf('triage')).to.match(/^New\. the memory of flow_1\n/)
    expect(await systemOf('unknown')).to.match(/^New\. \n/)
  })
})
