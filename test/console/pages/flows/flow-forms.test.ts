import { expect } from 'chai'
import { withValue } from '../../../../services/console/base/json-value.ts'
import { diffLines } from '../../../../services/console/base/line-diff.ts'
import { complete, completionAt, referencesFor } from '../../../../services/console/pages/flows/edit/references.ts'
import { propertiesOf, renamed, withNew, without } from '../../../../services/console/pages/flows/edit/schema-edit.ts'
import { addUp } from '../../../../services/console/pages/flows/runs/flow-stats.ts'

describe('the references of a prompt', () => {
  const definition = {
    input_schema: { properties: { text: { type: 'string' }, who: { properties: { name: {} } }, 'not. a key': {} } },
    sub_agents: [{ name: 'mood', output_schema: { type: 'object', properties: { word: { type: 'string' } } } }, null],
  }
  const texts = (agent: 'main' | 'sub-agent') => referencesFor(definition, agent).map(({ text }) => text)

  it('are those of the schema, of the sub-agents and of the memory; a sub-agent sees no other', () => {
    const own = ['{{.input.text}}', '{{.input.who}}', '{{.input.who.name}}']
    expect(texts('sub-agent')).to.deep.equal([...own, '{{.memory}}'])
    expect(texts('main')).to.deep.equal([...own, '{{.sub_outputs.mood}}', '{{.sub_outputs.mood.word}}', '{{.memory}}'])
  })

  it('are offered while one is being written before the caret, and replace it', () => {
    const references = referencesFor(definition, 'main')
    const text = 'Say {{.name}} and more'
    const found = completionAt(text, 'Say {{.name'.length, references)
    expect(found?.options.map((each) => each.text)).to.deep.equal(['{{.input.who.name}}'])
    expect(complete(text, { from: 4, to: 11 }, '{{.input.who.name}}')).to.deep.equal({
      text: 'Say {{.input.who.name}} and more',
      caret: 23,
    })
    for (const caret of [2, text.length]) expect(completionAt(text, caret, references)).to.equal(undefined)
  })
})

describe('the changes of a document', () => {
  it('leave all else as it is, and take `__proto__` for a name', () => {
    const document = { a: [1, 2, 3], b: { c: 1 } }
    expect(withValue(document, ['a', 1], undefined)).to.deep.equal({ a: [1, 3], b: { c: 1 } })
    expect(withValue(document, ['b', 'd', 'e'], 2)).to.deep.equal({ a: [1, 2, 3], b: { c: 1, d: { e: 2 } } })
    expect(Object.keys(withValue({}, ['__proto__'], 1) as object)).to.deep.equal(['__proto__'])
  })

  it('keep the place of a property that gets another name, and what is required', () => {
    const schema = { type: 'object', properties: { a: { type: 'string', minLength: 1 }, b: {} }, required: ['a'] }
    const next = renamed(schema, 'a', 'z')
    expect(JSON.stringify(next['properties'])).to.equal('{"z":{"type":"string","minLength":1},"b":{}}')
    expect(next['required']).to.deep.equal(['z'])
    expect(renamed(schema, 'a', 'b')).to.equal(schema)
    expect(without(next, 'z')).to.deep.equal({ type: 'object', properties: { b: {} } })
    expect(propertiesOf(withNew({})).map(({ name, type }) => [name, type])).to.deep.equal([['field_1', 'string']])
  })

  it('are shown line by line', () => {
    const signs = { same: ' ', removed: '-', added: '+' }
    const shown = (before: string, after: string) =>
      diffLines(before, after).map(({ kind, text }) => signs[kind] + text)
    expect(shown('a\nb\nc\nd', 'a\nx\nc\nd\ne')).to.deep.equal([' a', '-b', '+x', ' c', ' d', '+e'])
    expect(shown('a', 'a')).to.deep.equal([' a'])
    const [many, others] = ['a', 'b'].map((name) => Array.from({ length: 1_100 }, (_, i) => name + i).join('\n'))
    expect(diffLines(many ?? '', others ?? '')).to.have.length(2_200)
  })
})

describe('the figures of a flow', () => {
  it('are the last seven days added up: what failed and what did not fit count as failures, and a busy day counts more', () => {
    const now = Date.parse('2026-11-25T12:30:00Z')
    const day = (ago: number, runs: number, ms: number | null) => ({
      start: new Date(Date.parse('2026-11-25T00:00:00Z') - ago * 86_400_000).toISOString(),
      ...{
        runs,
        failed: 1,
        verdicts: { valid: runs - 2, invalid: 1 },
        cost_usd: runs,
        p50_ms: ms,
        p95_ms: ms && ms * 2,
      },
      is_partial: false,
    })
    const stats = addUp([day(0, 4, 100), day(2, 3, 900), { ...day(6, 2, null), is_partial: true }], now)
    expect(stats).to.deep.equal({
      ...{ runs: 9, failures: 6, costUsd: 9, p50Ms: 100, p95Ms: 200 },
      days: [2, 0, 0, 0, 3, 0, 4],
      isPartial: true,
    })
    expect(addUp([], now)).to.deep.include({ runs: 0, p50Ms: undefined, p95Ms: undefined, isPartial: false })
  })
})
