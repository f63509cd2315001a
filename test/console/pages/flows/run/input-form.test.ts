import { expect } from 'chai'
import { rawOf, readInput } from '../../../../../services/console/pages/flows/run/input-form.ts'
import { specOf } from '../../../../../services/console/pages/flows/run/input-spec.ts'

describe('the form of an input schema', () => {
  const spec = specOf({
    type: 'object',
    properties: {
      text: { type: 'string', minLength: 2 },
      count: { type: 'integer', minimum: 1 },
      kind: { enum: ['a', 2] },
      isNew: { type: ['boolean', 'null'] },
      tags: { type: 'array', items: { type: 'string' } },
      address: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
      rest: { anyOf: [{ type: 'string' }, { type: 'number' }] },
    },
    required: ['text'],
  })
  const full = { text: 'hi', count: 3, kind: 2, isNew: false, tags: ['x', 'y'], address: { city: 'Ulm' }, rest: [1] }

  it('gives back the value that it was filled with', () => {
    expect(readInput(spec, rawOf(spec, full))).to.deep.equal({ value: full, problems: [] })
  })

  it('leaves out what is not given, also an object that is not needed, with its needed fields', () => {
    expect(readInput(spec, rawOf(spec, { text: 'hi' }))).to.deep.equal({ value: { text: 'hi' }, problems: [] })
  })

  it('names the place of each problem', () => {
    const raw = { ...(rawOf(spec, full) as object), text: '', count: '1.5', rest: 'x', tags: ['', 'y'] }
    expect(readInput(spec, raw).problems).to.deep.equal([
      { pointer: '/text', message: 'This is needed.' },
      { pointer: '/count', message: 'This is no whole number.' },
      { pointer: '/tags/0', message: 'This is needed.' },
      { pointer: '/rest', message: 'This is no JSON: texts need quotes.' },
    ])
  })

  it('asks by JSON for what fields cannot ask', () => {
    const kinds = [{ $ref: '#/x' }, { type: 'array' }, { type: 'object' }, { type: ['string', 'number'] }, true, {}]
    expect(kinds.map((schema) => specOf(schema).kind)).to.deep.equal(kinds.map(() => 'json'))
  })
})
