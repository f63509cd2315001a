import { expect } from 'chai'
import { fitSchema, withDefaults } from '../../../../shared/agent/tools/mcp/fit-schema.ts'

describe('the input of an MCP tool', () => {
  it('has the defaults of fields that the server requires, at any depth, which the model need not give', () => {
    const inner = { type: 'object', required: ['unit'], properties: { unit: { type: 'string', default: 'km' } } }
    const schema = {
      type: 'object',
      required: ['depth', 'name', 'none'],
      properties: { depth: { default: 3 }, name: {}, none: { default: null }, free: { default: 1 }, inner },
    }
    expect(fitSchema(schema)).to.deep.include({ required: ['name'] })
    const filled = { name: 'x', inner: { unit: 'km' }, depth: 3, none: null }
    expect(withDefaults(schema, { name: 'x', inner: {} })).to.deep.equal(filled)
    expect(withDefaults(schema, { ...filled, depth: 0 })).to.deep.equal({ ...filled, depth: 0 })
  })
})

describe('the input schema of an MCP tool', () => {
  it('has no null for an absent keyword, at any depth, and keeps the nulls that are values', () => {
    const property = { type: 'string', title: null, default: null, enum: ['a', null] }
    const schema = { type: 'object', required: null, description: null, properties: { required: property, b: null } }
    expect(fitSchema(schema)).to.deep.equal({
      type: 'object',
      properties: { required: { type: 'string', default: null, enum: ['a', null] }, b: {} },
    })
  })

  it('is that of an object where it names no type, and of the newer draft in place of 2019-09', () => {
    expect(fitSchema({ properties: {} })).to.deep.equal({ type: 'object', properties: {} })
    expect(fitSchema({ $schema: 'https://json-schema.org/draft/2019-09/schema', type: 'object' })).to.deep.equal({
      type: 'object',
    })
    const known = { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object' }
    expect(fitSchema(known)).to.deep.equal(known)
    expect([fitSchema({ type: 'string' }), fitSchema(7)]).to.deep.equal([{ type: 'string' }, 7])
  })
})
