import { expect } from 'chai'
import { toolParameters } from '../../../shared/agent/providers/tool-schema.ts'
import type { JsonObject } from '../../../shared/kernel/events.ts'

const text = { type: 'string' }
const number = { type: 'number' }
const object = (properties: JsonObject, ...required: string[]): JsonObject => ({ type: 'object', properties, required })

describe("the schema of a tool's input as providers take it", () => {
  it('is the tool’s own where that is an object without alternatives, the same one each time', () => {
    const schema = object({ path: text }, 'path')
    expect(toolParameters(schema)).to.equal(schema)
    const combined = { anyOf: [object({ path: text })] }
    expect(toolParameters(combined)).to.equal(toolParameters(combined))
  })

  it('is an object with properties where the tool’s own says neither, and keeps the other keywords', () => {
    expect(toolParameters({ description: 'd' })).to.deep.equal({ description: 'd', type: 'object', properties: {} })
    expect(toolParameters({ type: 'object' })).to.deep.equal({ type: 'object', properties: {} })
  })

  it('has the properties of all alternatives, and requires what each of them requires', () => {
    for (const keyword of ['anyOf', 'oneOf']) {
      const schema = {
        [keyword]: [object({ id: text, a: text }, 'id', 'a'), object({ id: text, b: number }, 'id', 'b')],
      }
      expect(toolParameters(schema), keyword).to.deep.equal(object({ id: text, a: text, b: number }, 'id'))
    }
  })

  it('requires what any part of allOf requires, and no name without a property', () => {
    const schema = { ...object({ a: text }, 'a', 'gone'), allOf: [object({ b: number }, 'b')] }
    expect(toolParameters(schema)).to.deep.equal(object({ a: text, b: number }, 'a', 'b'))
  })

  it('lets a property of several schemas be any of them, each once', () => {
    const schema = { oneOf: [object({ a: text }), object({ a: number }), object({ a: text })] }
    expect(toolParameters(schema)).to.deep.equal({ type: 'object', properties: { a: { anyOf: [text, number] } } })
  })

  it('follows references within the schema, by escaped names too, and no others', () => {
    const $defs = { 'a/b~c': object({ a: text }, 'a') }
    const followed = toolParameters({ $ref: '#/$defs/a~1b~0c', $defs })
    expect(followed).to.deep.equal({ ...object({ a: text }, 'a'), $defs })
    for (const $ref of ['https://example.com/x', '#/$defs/none', '#/constructor'])
      expect(toolParameters({ $ref }), $ref).to.deep.equal({ type: 'object', properties: {} })
  })

  it('ends at a reference to itself, and at values that are no schemas', () => {
    const schema = { ...object({ a: text }), anyOf: [{ $ref: '#' }, 7, null], allOf: 'no list' }
    expect(toolParameters(schema)).to.deep.equal({ type: 'object', properties: { a: text } })
  })
})
