import { expect } from 'chai'
import fc from 'fast-check'
import { TextBuilder } from '../../../shared/agent/engine/text-builder.ts'

function join(pieces: readonly string[]): string {
  const builder = new TextBuilder()
  for (const piece of pieces) builder.add(piece)
  return builder.take()
}

describe('building a text from pieces', () => {
  it('the text is its pieces joined, at any size', () => {
    const piece = fc.string({ unit: 'grapheme', maxLength: 200 })
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), fc.constantFrom(1, 600), (some, times) => {
        const pieces = Array.from({ length: times }, () => some).flat()
        expect(join(pieces) === pieces.join('')).to.equal(true)
      }),
      { numRuns: 60 },
    )
  })

  it('a character whose halves come in two pieces is whole in a large text too', () => {
    const [high, low] = ['😀'.slice(0, 1), '😀'.slice(1)]
    const pieces = ['x'.repeat(70_000), high, low, `y${high}`, '', `${low}z`]
    expect(join(pieces).slice(70_000)).to.equal('😀y😀z')
  })

  it('a builder can be used again after its text was taken', () => {
    const builder = new TextBuilder()
    for (const text of ['x'.repeat(100_000), 'short', 'é'.repeat(300_000), '']) {
      builder.add(text)
      expect(builder.isLarge).to.equal(text.length > 65_536)
      expect(builder.take() === text).to.equal(true)
    }
  })

  it('a large text is held as UTF-8 outside the heap, and its memory is given back when it is taken', () => {
    const builders = Array.from({ length: 20 }, () => new TextBuilder())
    const before = process.memoryUsage().external
    for (const builder of builders) for (let i = 0; i < 32; i++) builder.add('x'.repeat(64 * 1024))
    const held = process.memoryUsage().external - before
    expect(held).to.be.within(20 * 2_000_000, 20 * 2_500_000)
    for (const builder of builders) builder.take()
    expect(process.memoryUsage().external - before - 20 * 2_097_152).to.be.lessThan(20 * 400_000)
  })
})
