import { expect } from 'chai'
import * as fc from 'fast-check'
import { findFlaw } from '../../../shared/platform/api/json-scan.ts'
import { CountedText } from '../../support/counted.ts'

const depthOf = (value: unknown): number =>
  typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0

const hasProtoKey = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  Object.entries(value).some(([key, inner]) => key === '__proto__' || hasProtoKey(inner))

const countValues = (value: unknown): number =>
  typeof value === 'object' && value !== null ? 1 + Object.values(value).reduce(sumOf, 0) : 1
const sumOf = (sum: number, value: unknown): number => sum + countValues(value)

/** Any spelling of a character in a JSON string. */
const spelled = (text: string, escapes: readonly boolean[]): string =>
  text.replaceAll(/./g, (char, i: number) =>
    escapes[i] ? `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}` : char,
  )

describe('the scan of a JSON text before it is parsed', () => {
  it('D2.4: finds a key __proto__ exactly where parsing would find one', () => {
    const key = fc.oneof(fc.string(), fc.constantFrom('__proto__', '"__proto__":', '\\', 'constructor'))
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof({ maxDepth: 4 }, fc.string(), key, fc.integer(), fc.array(tie('tree')), tie('object')),
      object: fc
        .array(fc.tuple(key, tie('tree')), { maxLength: 4 })
        .map((entries) =>
          JSON.parse(`{${entries.map(([k, v]) => `${JSON.stringify(k)}:${JSON.stringify(v)}`).join()}}`),
        ),
    }))
    fc.assert(
      fc.property(tree, fc.constantFrom(0, 2), (value, indent) => {
        const text = JSON.stringify(value, null, indent)
        expect(findFlaw(text) !== undefined).to.equal(hasProtoKey(JSON.parse(text)))
      }),
      { numRuns: 500 },
    )
  })

  it('D2.4: finds it in every spelling', () => {
    const escapes = fc.array(fc.boolean(), { minLength: 9, maxLength: 9 })
    fc.assert(
      fc.property(escapes, fc.constantFrom('', ' ', '\n\t'), (which, gap) => {
        expect(findFlaw(`{"${spelled('__proto__', which)}"${gap}:1}`)).to.match(/__proto__/)
      }),
    )
  })

  it('accepts 64 levels and no more, and ignores brackets inside strings', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: 60, maxLength: 70 }), (levels) => {
        const text = levels.reduceRight((inner, isArray) => (isArray ? `[${inner}]` : `{"[{\\"":${inner}}`), '"[["')
        expect(depthOf(JSON.parse(text))).to.equal(levels.length)
        expect(findFlaw(text) !== undefined).to.equal(levels.length > 64)
      }),
    )
  })

  it('P13: counts the values of a text exactly, however it is indented', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), fc.constantFrom(0, 1), (json, indent) => {
        const value: unknown = JSON.parse(json)
        fc.pre(!hasProtoKey(value))
        const text = JSON.stringify(value, null, indent)
        const count = countValues(value)
        expect(findFlaw(text, count)).to.equal(undefined)
        // A value that is neither a list nor an object is refused later, whatever the limit.
        if (count > 1)
          expect(findFlaw(text, count - 1)).to.equal(`the body has more than ${count - 1} values; send less`)
      }),
      { numRuns: 500 },
    )
  })

  it('looks at each character a few times, whatever the text', () => {
    const size = 10_000
    for (const text of [
      '"'.repeat(size),
      '\\'.repeat(size),
      `"${'\\"'.repeat(size / 2)}`,
      `"a"${' '.repeat(size)}`,
      `[${' '.repeat(size)}`,
    ]) {
      const counted = new CountedText(text)
      findFlaw(counted.text)
      expect(counted.looked, text.slice(0, 4)).to.be.at.most(3 * size)
    }
  })

  it('accepts text that is not JSON, which the parser then refuses', () => {
    for (const text of ['', '{', '"', '"\\', '{"a\\u00zz_proto__":1}', ']]]', '{"__proto__"']) {
      expect(findFlaw(text), text).to.equal(undefined)
    }
  })
})
