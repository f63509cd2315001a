import { expect } from 'chai'
import { StreamMeter } from '../../../shared/agent/providers/stream-meter.ts'

const LIMITS = { maxTurnBytes: 1_000, maxEventBytes: 10 }

type Chunk = string | number[]

/** The result for each chunk. */
function results(chunks: Chunk[], limits = LIMITS): unknown[] {
  const meter = new StreamMeter(limits)
  return chunks.map((chunk) => meter.add(Buffer.from(chunk as string)))
}

const OK = undefined

describe('the meter of a streamed response', () => {
  it('counts the bytes of a turn over all chunks, up to the limit', () => {
    const limits = { maxTurnBytes: 6, maxEventBytes: 100 }
    expect(results(['abc', 'def'], limits)).to.deep.equal([OK, OK])
    expect(results(['abc', 'def', 'g'], limits)).to.deep.equal([OK, OK, 'turn_bytes'])
    expect(results(['\n\n\n', '\n\n\n', '\n'], limits)).to.deep.equal([OK, OK, 'turn_bytes'])
  })

  const EVENTS: [rule: string, chunks: string[], last: string | undefined][] = [
    ['an unfinished text line of 10 bytes fits', ['0123456789'], OK],
    ['an unfinished text line of 11 bytes does not', ['0123456789a'], 'event_bytes'],
    ['a finished text line of 10 bytes fits', ['0123456789\n'], OK],
    ['a finished text line of 11 bytes does not', ['0123456789a\n'], 'event_bytes'],
    ['the text lines of an event count together', ['01234\n', '56789\n'], OK],
    ['their sum may not exceed the limit', ['01234\n', '56789a\n'], 'event_bytes'],
    ['their sum counts before the last of them ends', ['01234\n', '56789a'], 'event_bytes'],
    ['a text line may be in several chunks', ['01234', '56789\n'], OK],
    ['a text line in several chunks counts as a whole', ['01234', '56789a\n'], 'event_bytes'],
    [
      'a text line of 11 bytes does not fit although its event ends in the same chunk',
      ['0123456789a\n\n'],
      'event_bytes',
    ],
    ['an empty text line ends an event', ['0123456789\n\n0123456789\n\n'], OK],
    ['an empty text line ends an event where lines end with CR alone', ['012345678\r\r', '012345678\r', '\r0'], OK],
    ['a CRLF in two chunks is one line end', ['01234567\r', '\nabc\r\n'], 'event_bytes'],
    ['an empty text line with a carriage return ends an event', ['01234567\r\n\r\n01234567\r\n\r\n'], OK],
    ['a text line of two bytes ends no event', ['01234\nab\n0123'], 'event_bytes'],
    ['an event that ends in the next chunk ends there', ['0123456789\n', '\n0123456789\n'], OK],
    ['the bytes before an empty text line are forgotten', ['01234\n\n', '56789a\n'], OK],
  ]
  for (const [rule, chunks, last] of EVENTS) {
    it(`with at most 10 bytes an event: ${rule}`, () => expect(results(chunks).at(-1)).to.equal(last))
  }

  it('an error body counts as one event, whatever text lines it has', () => {
    const meter = new StreamMeter(LIMITS)
    expect(meter.addErrorBody(Buffer.from('0123\n\n678'))).to.equal(OK)
    expect(meter.addErrorBody(Buffer.from('9'))).to.equal(OK)
    expect(meter.addErrorBody(Buffer.from('a'))).to.equal('event_bytes')
  })

  for (const character of ['é', '€', '\u0800', '😀', '\u{10000}']) {
    const bytes = [...Buffer.from(character)]
    for (let cut = 1; cut < bytes.length; cut++) {
      it(`"${character}" may be cut after ${cut} of its ${bytes.length} bytes`, () => {
        expect(
          results([
            [97, ...bytes.slice(0, cut)],
            [...bytes.slice(cut), 98],
          ]),
        ).to.deep.equal([OK, OK])
      })

      it(`"${character}" cut after ${cut} bytes must be continued in the next chunk`, () => {
        expect(results([bytes.slice(0, cut), 'x'])).to.deep.equal([OK, 'not_utf8'])
      })
    }
    it(`the bytes of "${character}" may come one by one`, () => {
      expect(results(bytes.map((byte) => [byte]))).to.deep.equal(bytes.map(() => OK))
    })
  }

  const INVALID: [rule: string, bytes: number[]][] = [
    ['a continuation byte without a beginning', [0x80]],
    ['three continuation bytes without a beginning', [97, 0x80, 0x80, 0x80]],
    ['a character that is continued for too long', [0xc3, 0xa9, 0xa9]],
    ['an overlong form', [0xc0, 0xaf]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['a partial character before text', [0xf0, 0x9f, 97]],
  ]
  for (const [rule, bytes] of INVALID) {
    it(`${rule} is not UTF-8`, () => expect(results([bytes])).to.deep.equal(['not_utf8']))
  }

  it('text after a completed partial character is checked too', () => {
    const [first = 0, second = 0] = Buffer.from('é')
    expect(results([[first], [second, 0x80]])).to.deep.equal([OK, 'not_utf8'])
    expect(results([[first], [second], [0x80]])).to.deep.equal([OK, OK, 'not_utf8'])
  })
})
