import { expect } from 'chai'
import fc from 'fast-check'
import { bytesOf, placeOf, shownPath, textOf } from '../../../../shared/work/runs/kept/path-bytes.ts'

describe('a name whose bytes are not UTF-8', () => {
  it('is a text that leads back to the same bytes, also through JSON, and never holds another separator', () => {
    const name = fc.uint8Array({ minLength: 1, maxLength: 40 }).map((bytes) => Buffer.from(bytes))
    fc.assert(
      fc.property(name, (bytes) => {
        const text = JSON.parse(JSON.stringify(textOf(bytes))) as string
        expect(Buffer.from(bytesOf(text))).to.deep.equal(bytes)
        expect(text.split('/').length).to.equal(bytes.toString('latin1').split('/').length)
        expect(shownPath(text).isWellFormed()).to.equal(true)
      }),
      { numRuns: 500, seed: 47 },
    )
  })

  it('is the plain text where the bytes are UTF-8, also with the character that stands for others', () => {
    for (const text of ['a', 'é', '😀', '\ufffd', '\ufeffa']) expect(textOf(Buffer.from(text))).to.equal(text)
    expect(placeOf('/r', 'é/a')).to.equal('/r/é/a')
    expect(placeOf('/r', 'a\udcff')).to.deep.equal(Buffer.concat([Buffer.from('/r/a'), Buffer.of(0xff)]))
  })
})
