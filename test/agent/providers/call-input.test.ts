import { expect } from 'chai'
import fc from 'fast-check'
import { CallInput } from '../../../shared/agent/providers/call-input.ts'

function inputOf(...pieces: string[]): string {
  const input = new CallInput()
  for (const piece of pieces) input.add(piece)
  return input.text
}

const prefixes = (text: string, cuts: readonly number[]): string[] => [
  ...cuts
    .map((cut) => 1 + (cut % text.length))
    .toSorted((a, b) => a - b)
    .map((cut) => text.slice(0, cut)),
  text,
]

const JSON_TEXT = fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value))
const CUTS = fc.array(fc.nat(), { maxLength: 8 })

describe('the input of a tool call', () => {
  it('is the same from new pieces, from pieces that hold all of it so far, and with all of it once more at the end', () => {
    fc.assert(
      fc.property(JSON_TEXT, CUTS, (text, cuts) => {
        const soFar = prefixes(text, cuts)
        const pieces = soFar.map((each, i) => each.slice(soFar[i - 1]?.length ?? 0))
        expect(inputOf(...pieces)).to.equal(text)
        expect(inputOf(...soFar)).to.equal(text)
        expect(inputOf(...pieces, text)).to.equal(text)
      }),
      { numRuns: 200 },
    )
  })

  it('is the last one where a server sends objects that grow, or an empty one first', () => {
    expect(inputOf('{}', '{"a":""}', '{"a":"b"}')).to.equal('{"a":"b"}')
    expect(inputOf('{}', '{"a":', '1}')).to.equal('{"a":1}')
    expect(inputOf('{"a":1}', '{ "a": 1 }')).to.equal('{ "a": 1 }')
  })

  it('keeps a value that begins like the whole, and stays as it was written when it is no JSON', () => {
    expect(inputOf('{"a":', '{"a":', '1}}')).to.equal('{"a":{"a":1}}')
    expect(inputOf('{"a":', '[{"b":1}')).to.equal('{"a":[{"b":1}')
    expect(inputOf('')).to.equal('')
  })
})
