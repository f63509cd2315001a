import { expect } from 'chai'
import type { JsonObject } from '../../../shared/kernel/events.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import type { SchemaChecker } from '../../../shared/platform/schemas/port.ts'
import { createFlowCompiler, type FlowProblem } from '../../../shared/work/flows/compile.ts'
import { readDefinition } from '../../../shared/work/flows/definition.ts'
import type { FlowDefinition } from '../../../shared/work/flows/port.ts'
import { BODY, CHECKER } from './setup.ts'

const INPUT = {
  type: 'object',
  properties: { text: { type: 'string' }, address: { $ref: '#/$defs/address' } },
  $defs: { address: { type: 'object', properties: { city: { type: 'string' } } } },
}
const PRICES = {
  name: 'prices',
  prompt: 'Find the prices in {{.input.text}}. {{.memory}}',
  output_schema: { type: 'object', properties: { items: { type: 'array', items: { type: 'number' } } } },
  tools: ['Grep'],
}
const GOOD = {
  input_schema: INPUT,
  output_schema: { type: 'object' },
  system_prompt_template: 'Deliver to {{.input.address.city}}. {{.memory}}',
  user_prompt_template: '{{.sub_outputs.prices.items.0}} of {{.sub_outputs.prices}}',
  tools: ['Read'],
  sub_agents: [PRICES],
}

const compile = createFlowCompiler({ checkers: { of: () => CHECKER }, tools: () => ['Read', 'Grep'] })
const definitionOf = (fields: JsonObject): FlowDefinition => readDefinition({ ...GOOD, ...fields })
const agents = (...more: JsonObject[]) => ({ sub_agents: more.map((fields) => ({ ...PRICES, ...fields })) })

async function problemOf(definition: FlowDefinition): Promise<FlowProblem> {
  const compiled = await compile(DEFAULT_TENANT, definition)
  return 'problems' in compiled ? compiled.problems[0] : expect.fail('it compiles')
}

const checkersWith = (findUnusable: SchemaChecker['findUnusable']) => ({ of: () => ({ findUnusable }) })

describe('compiling a flow', () => {
  it('D6.3: a good definition compiles into its templates', async () => {
    const compiled = await compile(DEFAULT_TENANT, definitionOf({}))
    if ('problems' in compiled) throw new Error(compiled.problems[0].message)
    const { system, user, subAgents } = compiled.templates
    const values = {
      input: { text: 'a chair', address: { city: 'Rome' } },
      sub_outputs: { prices: { items: [60] } },
      memory: 'M',
    }
    expect(system?.render(values)).to.equal('Deliver to Rome. M')
    expect(user?.render(values)).to.equal('60 of {"items":[60]}')
    expect([...subAgents.keys()]).to.deep.equal(['prices'])
    expect(subAgents.get('prices')?.render(values)).to.equal('Find the prices in a chair. M')
  })

  it('a definition without templates and sub-agents compiles', async () => {
    expect(await compile(DEFAULT_TENANT, readDefinition(BODY))).to.deep.equal({
      templates: { subAgents: new Map() },
      usesMemory: true,
    })
  })

  it('says whether a prompt holds the memory, as the default system prompt does', async () => {
    const usesMemory = async (fields: JsonObject) => {
      const compiled = await compile(DEFAULT_TENANT, readDefinition({ ...BODY, ...fields }))
      return 'problems' in compiled ? compiled.problems[0].message : compiled.usesMemory
    }
    const [system_prompt_template, memory] = ['Say yes.', 'It says: {{.memory}}']
    const agent = (prompt: string) => [{ name: 'prices', prompt, output_schema: {} }]
    expect(await usesMemory({ system_prompt_template })).to.equal(false)
    expect(await usesMemory({ system_prompt_template: memory })).to.equal(true)
    expect(await usesMemory({ system_prompt_template, user_prompt_template: memory })).to.equal(true)
    expect(await usesMemory({ system_prompt_template, sub_agents: agent(memory) })).to.equal(true)
    expect(await usesMemory({ system_prompt_template, sub_agents: agent('Say no.') })).to.equal(false)
    expect(await usesMemory({ user_prompt_template: 'Say yes.' })).to.equal(true)
  })

  const WRONG: Record<string, [fields: JsonObject, path: string, message: RegExp]> = {
    'an unusable input_schema': [{ input_schema: { broken: '/properties/a' } }, '/input_schema/properties/a', /broken/],
    'an unusable output_schema': [{ output_schema: { broken: '' } }, '/output_schema', /broken/],
    "a sub-agent's unusable schema": [
      agents({ output_schema: { broken: '/x' } }),
      '/sub_agents/0/output_schema/x',
      /broken/,
    ],
    'an input that is no object': [{ input_schema: { type: 'array' } }, '/input_schema', /add "type": "object"/],
    'an unknown tool': [{ tools: ['Read', 'Fly'] }, '/tools/1', /no tool Fly; GET \/flows\/tools/],
    "a sub-agent's unknown tool": [agents({ tools: ['Grep', 'Fly'] }), '/sub_agents/0/tools/1', /no tool Fly/],
    'two sub-agents of one name': [agents({}, {}), '/sub_agents/1/name', /two sub-agents are named prices/],
    'a sub-agent named memory': [agents({}, { name: 'memory' }), '/sub_agents/1/name', /reserved/],
    'a sub-agent named like the main agent': [agents({}, { name: 'main' }), '/sub_agents/1/name', /reserved/],
    'no reference': [{ system_prompt_template: '{{text}}' }, '/system_prompt_template', /\{\{text\}\} is no reference/],
    'an unknown input': [
      { system_prompt_template: '{{.input.text}} {{.input.txt}}' },
      '/system_prompt_template',
      /\{\{\.input\.txt\}\} is not in input_schema/,
    ],
    'an unknown part of an input': [{ user_prompt_template: '{{.input.address.zip}}' }, '/user_prompt_template', /zip/],
    'a part of a text': [{ user_prompt_template: '{{.input.text.length}}' }, '/user_prompt_template', /length/],
    'a name of Object.prototype': [
      { user_prompt_template: '{{.input.constructor}}' },
      '/user_prompt_template',
      /constr/,
    ],
    'an unknown sub-agent': [
      { user_prompt_template: '{{.sub_outputs.costs}}' },
      '/user_prompt_template',
      /names no sub-agent; the sub-agents are: prices/,
    ],
    'a sub-agent that a flow has not': [
      { sub_agents: [], user_prompt_template: '{{.sub_outputs.toString}}' },
      '/user_prompt_template',
      /the sub-agents are: none/,
    ],
    "an unknown part of a sub-agent's output": [
      { user_prompt_template: '{{.sub_outputs.prices.total}}' },
      '/user_prompt_template',
      /is not in the output_schema of prices/,
    ],
    "a sub-agent's prompt with an unknown input": [
      agents({ prompt: '{{.input.price}}' }),
      '/sub_agents/0/prompt',
      /is not in input_schema/,
    ],
    "a sub-agent's prompt with another's output": [
      agents({ prompt: '{{.sub_outputs.prices}}' }),
      '/sub_agents/0/prompt',
      /run at the same time/,
    ],
  }
  for (const [what, [fields, path, message]] of Object.entries(WRONG)) {
    it(`D6.3: ${what} is a problem at ${path}`, async () => {
      const problem = await problemOf(definitionOf(fields))
      expect(problem.path).to.equal(path)
      expect(problem.message).to.match(message)
    })
  }

  it('D6.3: more than 8 sub-agents are a problem', async () => {
    const nine = Array.from({ length: 9 }, (_, i) => ({ ...PRICES, name: `a${i}` }))
    const definition = { ...definitionOf({}), sub_agents: nine, user_prompt_template: '{{.sub_outputs.a8}}' }
    expect(await problemOf(definition)).to.have.property('path', '/sub_agents')
    expect(await compile(DEFAULT_TENANT, { ...definition, sub_agents: nine.slice(1) })).to.have.property('templates')
  })

  it('D6.3: all problems are told at once: tools, sub-agents, schemas and templates', async () => {
    const pathsOf = async (fields: JsonObject) => {
      const compiled = await compile(DEFAULT_TENANT, definitionOf(fields))
      return 'problems' in compiled ? compiled.problems.map(({ path }) => path) : []
    }
    const wrong = {
      name: 'memory',
      tools: ['Nothing', 'Read', 'Gone'],
      prompt: 'Of {{.input.nothing}} and {{.input.gone}}',
    }
    const broken = { output_schema: { broken: '/a' }, input_schema: { broken: '/b' } }
    expect(
      await pathsOf({ ...broken, tools: ['No'], user_prompt_template: '{{', ...agents(wrong, {}, {}) }),
    ).to.deep.equal([
      '/tools/0',
      '/sub_agents/0/tools/0',
      '/sub_agents/0/tools/2',
      '/sub_agents/0/name',
      '/sub_agents/2/name',
      '/input_schema/b',
      '/output_schema/a',
      '/user_prompt_template',
    ])
    expect(await pathsOf({ user_prompt_template: '{{.input.a}} {{.input.b}} {{.input.a}}' })).to.deep.equal([
      '/user_prompt_template',
      '/user_prompt_template',
    ])
  })

  it('a definition is checked once, all its schemas together, while its tools are checked each time', async () => {
    const checked: (readonly JsonObject[])[] = []
    let tools = ['Read', 'Grep']
    const counting = createFlowCompiler({
      checkers: checkersWith(async (schemas) => {
        checked.push(schemas)
        return []
      }),
      tools: () => tools,
    })
    const definition = definitionOf({})
    const first = await counting(DEFAULT_TENANT, definition)
    expect(await counting(DEFAULT_TENANT, definition)).to.equal(first)
    expect(checked).to.deep.equal([[INPUT, { type: 'object' }, PRICES.output_schema]])
    tools = ['Read']
    expect(await counting(DEFAULT_TENANT, definition)).to.have.nested.property(
      'problems[0].path',
      '/sub_agents/0/tools/0',
    )
    tools = ['Read', 'Grep']
    expect(await counting(DEFAULT_TENANT, definition)).to.equal(first)
  })

  it('a check that fails at the moment is not remembered', async () => {
    let isAway = true
    const failing = createFlowCompiler({
      checkers: checkersWith(async () => {
        if (isAway) throw new Error('no thread')
        return []
      }),
      tools: () => ['Read', 'Grep'],
    })
    const definition = definitionOf({})
    const failure = await failing(DEFAULT_TENANT, definition).catch((cause: unknown) => cause)
    expect(failure).to.be.instanceOf(Error)
    isAway = false
    expect(await failing(DEFAULT_TENANT, definition)).to.have.property('templates')
  })
})
