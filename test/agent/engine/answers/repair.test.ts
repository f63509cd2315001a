import { expect } from 'chai'
import fc from 'fast-check'
import { checkOutput, repairWarning } from '../../../../shared/agent/engine/answers/output.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import { createSchemaCheckers } from '../../../../shared/platform/schemas/checker.ts'
import type { SchemaChecker } from '../../../../shared/platform/schemas/port.ts'

const FENCE = '```'

const SCHEMA = {
  type: 'object',
  required: ['a'],
  properties: { a: { type: 'string' }, n: { type: 'integer' }, list: { type: 'array', items: { type: 'string' } } },
  additionalProperties: false,
}

describe('an answer that is no plain JSON of its schema', () => {
  const checkers = createSchemaCheckers()
  const checker: SchemaChecker = checkers.of(DEFAULT_TENANT)
  after(() => checkers.close())

  const WANTED = { a: 'x', n: 1 }
  const JSON_TEXT = '{"a":"x","n":1}'

  const read: [what: string, answer: string, repairs: string[]][] = [
    ['a fence that is not closed', `${FENCE}json\n${JSON_TEXT}`, ['surrounding_text']],
    ['a word before the object', `json ${JSON_TEXT}`, ['surrounding_text']],
    ['a sentence around it', `Here [as you asked] it is: ${JSON_TEXT}. Can I help with {more}?`, ['surrounding_text']],
    ['two fences', `${FENCE}\nlet x\n${FENCE}\nso\n${FENCE}json\n${JSON_TEXT}\n${FENCE}`, ['surrounding_text']],
    [
      'two fences of one value',
      `${FENCE}\n${JSON_TEXT}\n${FENCE}\n${FENCE}\n${JSON_TEXT}\n${FENCE}`,
      ['surrounding_text'],
    ],
    ['a special token behind it', `${JSON_TEXT}<|im_end|>`, ['surrounding_text']],
    ['a bracket before it that is no JSON', `:{ so [see below ${JSON_TEXT}`, ['surrounding_text']],
    ['a brace too many', `${JSON_TEXT}}`, ['surrounding_text']],
    ['a raw tab', '{"a":"x\ty","n":1}', ['syntax']],
    ['a raw line break', '{"a":"x\ny","n":1}', ['syntax']],
    ['a trailing comma', '{"a":"x","n":1,}', ['syntax']],
    ['single quotes and Python’s words', "{'a': 'x', 'n': 1, 'list': None}", ['syntax', 'null_property']],
    ['a comment', '{"a":"x", // the text\n"n":1}', ['syntax']],
    [
      'wrong syntax in a fence behind a text',
      `So:\n${FENCE}json\n{"a":"x","n":1,}\n${FENCE}`,
      ['surrounding_text', 'syntax'],
    ],
    ['JSON as a text', JSON.stringify(JSON_TEXT), ['json_text']],
    ['JSON as a text within a text', JSON.stringify(`It is ${JSON_TEXT}`), ['json_text', 'surrounding_text']],
    ['null for an optional property', '{"a":"x","n":1,"list":null}', ['null_property']],
  ]
  for (const [what, answer, repairs] of read) {
    it(`is read with ${what}, which is named`, async () => {
      const checked = await checkOutput(answer, SCHEMA, checker)
      const value = what.includes('raw') ? { ...WANTED, a: JSON.parse(JSON.stringify(answer.slice(6, 9))) } : WANTED
      expect(checked).to.deep.equal({ value, repairs })
    })
  }

  const refused: [what: string, answer: string][] = [
    ['an object that was cut off', '{"a":"x","n":1'],
    ['a list that was cut off', '{"a":"x","list":["y"'],
    ['something left out', '{"a":"x","list":["y", ...]}'],
    ['two values that fit', `${JSON_TEXT} or {"a":"y"}`],
    ['null for a required property', '{"a":null}'],
    ['a value of another type', 'It is {"a":7}'],
    ['a whole object within one that was cut off', '{"list":[{"a":"x"}'],
    ['prose', 'I think so [maybe] {not}.'],
  ]
  for (const [what, answer] of refused) {
    it(`is asked for again with ${what}`, async () => {
      expect(await checkOutput(answer, SCHEMA, checker)).to.have.property('problems').that.is.not.empty
    })
  }

  it('is no list where a text has brackets only', async () => {
    const list = { type: 'array', items: { type: 'string' } }
    expect(await checkOutput('Sorry [not possible]', list, checker)).to.have.property('problems')
    expect(await checkOutput('So: ["a"]', list, checker)).to.deep.equal({ value: ['a'], repairs: ['surrounding_text'] })
  })

  it('has a warning that names what was repaired, and none when nothing was', () => {
    expect(repairWarning([])).to.equal(undefined)
    expect(repairWarning(['syntax'])).to.deep.include({ code: 'output_repaired', detail: { repairs: ['syntax'] } })
  })

  it('keeps quotes that a model has forgotten to escape, and every character of the other strings', async () => {
    const answer = '{"a":"say "hi", now","list":["[,}", "\\u00e9"],}'
    expect(await checkOutput(answer, SCHEMA, checker)).to.deep.include({
      value: { a: 'say "hi", now', list: ['[,}', 'é'] },
    })
  })

  const TEXT = fc.string({
    unit: fc.constantFrom('a', ' ', '"', "'", '{', '}', '[', ']', ',', ':', '\\', '\n', '`', '…'),
  })
  const VALUE = fc.record({ a: TEXT, list: fc.array(TEXT, { maxLength: 3 }) })
  const WRAPS: ((json: string) => string)[] = [
    (json) => json,
    (json) => `Sure, here it is: ${json}`,
    (json) => `${json}<|eot_id|>`,
    (json) => `${FENCE}json\n${json}`,
    (json) => `${json.slice(0, -1)},}`,
    (json) => JSON.stringify(json),
  ]

  it('has the value that was meant, however it is wrapped', async () => {
    await fc.assert(
      fc.asyncProperty(VALUE, fc.constantFrom(...WRAPS), async (value, wrap) => {
        const checked = await checkOutput(wrap(JSON.stringify(value)), SCHEMA, checker)
        expect(checked).to.have.property('value').that.deep.equals(value)
      }),
      { numRuns: 150 },
    )
  })

  it('is never read where its end is missing', async () => {
    await fc.assert(
      fc.asyncProperty(VALUE, fc.nat(), fc.constantFrom(...WRAPS.slice(0, 2)), async (value, cut, wrap) => {
        const json = JSON.stringify(value)
        const part = wrap(json.slice(0, 1 + (cut % (json.length - 1))))
        expect(await checkOutput(part, SCHEMA, checker)).to.have.property('problems')
      }),
      { numRuns: 150 },
    )
  })
})
