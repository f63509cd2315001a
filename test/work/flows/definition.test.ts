import { expect } from 'chai'
import type { JsonObject } from '../../../shared/kernel/events.ts'
import { readDefinition } from '../../../shared/work/flows/definition.ts'
import { BODY, refusalOf } from './setup.ts'

const read = async (fields: JsonObject) => readDefinition({ ...BODY, ...fields })
const AGENT = { name: 'a', prompt: 'Do it.', output_schema: {} }
const agents = (...more: JsonObject[]) => ({ sub_agents: more.map((fields) => ({ ...AGENT, ...fields })) })

describe('the definition of a flow', () => {
  it('api.md "Flow definition": the defaults are filled in', async () => {
    expect(await read({})).to.deep.equal({ ...BODY, tools: [], sub_agents: [], evolve: false })
    expect(await read(agents({}))).to.have.deep.nested.property('sub_agents[0]', { ...AGENT, tools: [] })
  })

  it('all fields are kept as they are, and unknown ones are left out', async () => {
    const whole = {
      ...BODY,
      system_prompt_template: 'S',
      user_prompt_template: 'U',
      tools: ['Read'],
      model: 'm',
      sub_agents: [{ ...AGENT, tools: ['Grep'], model: 'm2', provider_instance: 'p' }],
      evolve: true,
    }
    expect(readDefinition(whole)).to.deep.equal(whole)
    expect(readDefinition({ ...whole, name: 'x', version: 7, other: 1 })).to.deep.equal(whole)
  })

  const WRONG: Record<string, [fields: JsonObject, param: string]> = {
    'no input_schema': [{ input_schema: undefined }, '/input_schema'],
    'an input_schema that is true': [{ input_schema: true }, '/input_schema'],
    'no output_schema': [{ output_schema: undefined }, '/output_schema'],
    'an output_schema that is a list': [{ output_schema: [] }, '/output_schema'],
    'a system prompt that is a number': [{ system_prompt_template: 1 }, '/system_prompt_template'],
    'a system prompt of 100,001 characters': [
      { system_prompt_template: 'x'.repeat(100_001) },
      '/system_prompt_template',
    ],
    'a user prompt that is null': [{ user_prompt_template: null }, '/user_prompt_template'],
    'tools as a text': [{ tools: 'Read' }, '/tools'],
    '129 tools': [{ tools: Array.from({ length: 129 }, () => 'Read') }, '/tools'],
    'a tool that is a number': [{ tools: ['Read', 1] }, '/tools/1'],
    'an empty model': [{ model: '' }, '/model'],
    'a model of 257 characters': [{ model: 'x'.repeat(257) }, '/model'],
    'evolve as a text': [{ evolve: 'true' }, '/evolve'],
    'sub-agents as an object': [{ sub_agents: {} }, '/sub_agents'],
    '9 sub-agents': [agents(...Array.from({ length: 9 }, (_, i) => ({ name: `a${i}` }))), '/sub_agents'],
    'a sub-agent that is a text': [{ sub_agents: ['a'] }, '/sub_agents/0'],
    'a sub-agent without a name': [agents({ name: undefined }), '/sub_agents/0/name'],
    'a sub-agent named 1a': [agents({}, { name: '1a' }), '/sub_agents/1/name'],
    'a sub-agent named a.b': [agents({ name: 'a.b' }), '/sub_agents/0/name'],
    'a sub-agent named __proto__': [agents({ name: '__proto__' }), '/sub_agents/0/name'],
    'a name of 65 characters': [agents({ name: 'a'.repeat(65) }), '/sub_agents/0/name'],
    'a sub-agent without a prompt': [agents({ prompt: undefined }), '/sub_agents/0/prompt'],
    'a sub-agent without a schema': [agents({ output_schema: undefined }), '/sub_agents/0/output_schema'],
    'a sub-agent with a wrong tool': [agents({ tools: [''] }), '/sub_agents/0/tools/0'],
    'a sub-agent with a wrong model': [agents({ model: 1 }), '/sub_agents/0/model'],
    'a sub-agent with a wrong instance': [agents({ provider_instance: '' }), '/sub_agents/0/provider_instance'],
    'a sub-agent with a number as its instance': [agents({ provider_instance: 1 }), '/sub_agents/0/provider_instance'],
    'more than 1 MiB': [{ input_schema: { type: 'object', title: 'x'.repeat(1_048_576) } }, ''],
  }
  for (const [what, [fields, param]] of Object.entries(WRONG)) {
    it(`${what} is refused, and the message names the field`, async () => {
      const refusal = await refusalOf(read(fields))
      expect(refusal).to.include({ kind: 'invalid_request', param })
      expect(refusal.message).to.include(param.slice(1).replaceAll('/', '.'))
    })
  }

  it('the refusal lists the problems when there are several', async () => {
    const problemsOf = async (fields: JsonObject) => (await refusalOf(read(fields))).problems?.map(({ param }) => param)
    expect(await problemsOf({ model: '', evolve: 1 })).to.deep.equal(['/model', '/evolve'])
    expect(await problemsOf({ model: '' })).to.equal(undefined)
  })

  it('the largest values allowed are accepted', async () => {
    const text = '😀'.repeat(100_000)
    expect(await read({ system_prompt_template: text })).to.include({ system_prompt_template: text })
    const eight = agents(...Array.from({ length: 8 }, (_, i) => ({ name: `a${i}`, tools: ['x'.repeat(256)] })))
    expect((await read(eight)).sub_agents).to.have.length(8)
    expect((await read({ tools: Array.from({ length: 128 }, (_, i) => `t${i}`) })).tools).to.have.length(128)
  })
})
