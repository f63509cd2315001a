import { expect } from 'chai'
import fc from 'fast-check'
import { renderFrame } from '../../../shared/cluster/journal/frames.ts'
import { isLarge, LargeFrame } from '../../../shared/cluster/journal/large-frame.ts'
import type { RunEvent } from '../../../shared/kernel/events.ts'

const LARGE = 64 * 1024

const piecesOf = (frame: LargeFrame): Buffer[] => Array.from({ length: frame.pieceCount }, (_, i) => frame.piece(i))
const textOf = (text: string): RunEvent => ({ type: 'text', text })

describe('large frame', () => {
  it('an event is large when one of its texts has more than 65,536 characters', () => {
    expect([textOf('x'.repeat(LARGE)), textOf('x'.repeat(LARGE + 1))].map(isLarge)).to.deep.equal([false, true])
    expect(isLarge({ type: 'tool_use', id: 'i', tool_name: 'T', input: { text: 'x'.repeat(LARGE + 1) } })).to.equal(
      false,
    )
    const fields = { none: undefined, list: Array(LARGE + 1).fill(0) }
    expect(isLarge({ type: 'subagent_event', subagent_id: 's', event_type: 'x', ...fields })).to.equal(false)
  })

  it('its pieces together are the frame that is rendered at once, whatever the text', () => {
    const units = fc.constantFrom('a', '"', '\\', '\n', '\u0000', 'é', '€', '😀', '\u2028', '\ud83d', '\ude00')
    const texts = fc
      .array(units, { minLength: 1, maxLength: 40 })
      .map((some) => some.join('').repeat(3_000).slice(0, 90_000))
    fc.assert(
      fc.property(texts, fc.nat(9), fc.boolean(), (text, shift, isFirst) => {
        const filling = 'x'.repeat(LARGE + shift)
        const event = textOf(isFirst ? `${text}${filling}` : `${filling}${text}`)
        expect(Buffer.concat(piecesOf(new LargeFrame(7, event))).equals(Buffer.from(renderFrame(7, event)))).to.equal(
          true,
        )
      }),
      { numRuns: 40 },
    )
  })

  it('no piece ends inside a character, also not behind the last one that is a single unit', () => {
    const event = textOf('\uffff😀'.repeat(30_000)) // Three units, so that pieces end at each of them.
    for (const piece of piecesOf(new LargeFrame(1, event))) expect(piece.toString()).to.not.match(/\\ud83d|\\ude00/)
  })

  it('fields of other kinds, short ones and several large ones keep their order, and fields without a value are left out', () => {
    const long = '"long"\n'.repeat(20_000)
    const event: RunEvent = {
      type: 'subagent_event',
      subagent_id: 's',
      event_type: 'x',
      a: long,
      none: undefined,
      b: [1],
      c: long,
    }
    expect(Buffer.concat(piecesOf(new LargeFrame(1, event))).toString()).to.equal(renderFrame(1, event))
  })

  it('it counts the characters of its texts, not of what they become', () => {
    const lengths = ['x', '"'].map((unit) => new LargeFrame(1, textOf(unit.repeat(LARGE + 1))).length)
    expect(lengths[1]).to.equal(lengths[0])
  })

  it('a piece has 16,384 characters, and is the same each time that it is read', () => {
    const frame = new LargeFrame(1, textOf('x'.repeat(200_000)))
    const sizes = piecesOf(frame).map(({ length }) => length)
    expect(sizes.slice(0, -1)).to.deep.equal(Array(sizes.length - 1).fill(16_384))
    expect(frame.piece(2).equals(frame.piece(2))).to.equal(true)
  })
})
