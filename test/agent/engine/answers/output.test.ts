import { expect } from 'chai'
import {
  checkOutput,
  correctionPrompt,
  MAX_OUTPUT_CHARS,
  parseOutput,
} from '../../../../shared/agent/engine/answers/output.ts'

const FENCE = '```'

describe('the output of an agent', () => {
  const read: [what: string, answer: string, value: unknown][] = [
    ['plain JSON', ' {"a":1}\n', { a: 1 }],
    ['a JSON value that is no object', '"text"', 'text'],
    ['JSON in a code fence', `${FENCE}\n{"a":1}\n${FENCE}`, { a: 1 }],
    ['JSON in a fence that names the language', `${FENCE}json\r\n{"a":1}\r\n${FENCE}\n`, { a: 1 }],
    ['JSON in a fence on one line', `${FENCE}json {"a":1}${FENCE}`, { a: 1 }],
    ['one fence within other text', `Here it is:\n${FENCE}json\n{"a":1}\n${FENCE}\nDone.`, { a: 1 }],
    [
      'a text with a fence inside plain JSON',
      JSON.stringify({ a: `${FENCE}\nx\n${FENCE}` }),
      { a: `${FENCE}\nx\n${FENCE}` },
    ],
    ['64 levels', `${'['.repeat(64)}${']'.repeat(64)}`, JSON.parse(`${'['.repeat(64)}${']'.repeat(64)}`)],
  ]
  for (const [what, answer, value] of read) {
    it(`is read from ${what}`, () => expect(parseOutput(answer)).to.deep.equal({ value }))
  }

  const refused: [what: string, answer: string, problem: RegExp][] = [
    ['nothing', ' \n', /^is empty$/],
    ['prose', 'The answer is 1.', /^is not JSON: Unexpected token 'T'/],
    ['JSON that was cut off', '{"a":[1,', /^is not JSON: Unexpected end/],
    ['JSON with a text behind it', '{"a":1} done', /^is not JSON: .*position 8/],
    ['two fences', `${FENCE}\n1\n${FENCE}\n${FENCE}\n2\n${FENCE}`, /^is not JSON/],
    ['a fence on one line behind a text', `Here it is:\n${FENCE}{"a":1}${FENCE}`, /^is not JSON/],
    ['a fence that is not closed', `${FENCE}json\n{"a":1}`, /^is not JSON/],
    ['wrong JSON in a fence', `${FENCE}json\n{"a":1,}\n${FENCE}`, /^is not JSON: .*double-quoted/],
    ['65 levels', `${'['.repeat(65)}${']'.repeat(65)}`, /^is nested deeper than 64 levels$/],
    ['a very deep value', `${'['.repeat(100_000)}${']'.repeat(100_000)}`, /^is nested deeper/],
    ['a very long text', `"${'x'.repeat(MAX_OUTPUT_CHARS)}"`, /^is longer than 1000000 characters$/],
  ]
  for (const [what, answer, problem] of refused) {
    it(`is refused when it is ${what}`, () => {
      expect(parseOutput(answer)).to.have.property('problem').that.matches(problem)
    })
  }

  it('is checked against its schema only when it is JSON', async () => {
    const checked: unknown[] = []
    const checker = {
      check: async (schema: object, value: unknown) => {
        checked.push([schema, value])
        return [{ path: '/a', message: 'must be a number' }]
      },
    }
    expect(await checkOutput('no', {}, checker)).to.have.nested.property('problems[0].path', '')
    expect(checked).to.deep.equal([])
    expect(await checkOutput('{"a":"1"}', { type: 'object' }, checker)).to.deep.equal({
      problems: [{ path: '/a', message: 'must be a number' }],
    })
    expect(checked).to.deep.equal([[{ type: 'object' }, { a: '1' }]])
  })

  it('has a correction that lists every problem with its place', () => {
    const problems = [
      { path: '', message: 'is empty' },
      { path: '/items/0', message: 'must be a number' },
    ]
    expect(correctionPrompt(problems)).to.equal(
      'Your answer is not a valid output:\n- the answer is empty\n- /items/0 must be a number\n' +
        'Answer again with the whole corrected JSON, and with nothing else.',
    )
  })
})
