import { expect } from 'chai'
import { differencesOf } from '../../../services/cli/flows/flow-changes.ts'

describe('services/cli/flows/flow-changes', () => {
  it('a definition equals itself with its defaults, in whichever order its fields stand', () => {
    const from = {
      model: 'm',
      input_schema: { type: 'object', required: ['a'] },
      tools: [],
      sub_agents: [],
      evolve: false,
    }
    expect(differencesOf(from, { input_schema: { required: ['a'], type: 'object' }, model: 'm' })).to.deep.equal([])
  })

  it('names each field that differs by its path, and what comes and goes', () => {
    const from = { model: 'm', input_schema: { properties: { a: { type: 'string' }, b: {} } } }
    const to = { input_schema: { properties: { a: { type: 'number' }, c: {} } }, tools: ['Read'] }
    expect(differencesOf(from, to)).to.deep.equal([
      { path: 'tools', from: [], to: ['Read'] },
      { path: 'model', from: 'm', to: undefined },
      { path: 'input_schema.properties.a.type', from: 'string', to: 'number' },
      { path: 'input_schema.properties.b', from: {}, to: undefined },
      { path: 'input_schema.properties.c', from: undefined, to: {} },
    ])
  })
})
