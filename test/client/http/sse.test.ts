import { expect } from 'chai'
import fc from 'fast-check'
import { readEvents, type SseEvent } from '../../../shared/client/http/open-stream.ts'

async function parse(texts: readonly string[], onRetry: (ms: number) => void = () => {}): Promise<SseEvent[]> {
  async function* come() {
    yield* texts
  }
  const events: SseEvent[] = []
  for await (const event of readEvents(come(), onRetry)) events.push(event)
  return events
}

describe('the SSE parser of the client', () => {
  it('takes a field with and without a blank, and several data lines as one text', async () => {
    expect(await parse(['event:a\ndata: one\ndata:two\ndata\n\n'])).to.deep.equal([
      { id: '', event: 'a', data: 'one\ntwo\n' },
    ])
  })

  it('names an event without a name "message", and keeps the id for the events that name none', async () => {
    expect(await parse(['id: 7\ndata: a\n\ndata: b\n\n'])).to.deep.equal([
      { id: '7', event: 'message', data: 'a' },
      { id: '7', event: 'message', data: 'b' },
    ])
  })

  it('drops an event without data, one that is not complete, comments, unknown fields and ids with NUL', async () => {
    expect(await parse([': c\nevent: x\n\nfoo: 1\nid: 1\0\ndata: a\n\ndata: half\n'])).to.deep.equal([
      { id: '', event: 'message', data: 'a' },
    ])
  })

  it('takes only whole numbers below 100,000 as the pause before a new connection', async () => {
    const pauses: number[] = []
    await parse(['retry: 1s\n\n', 'retry: 100000\n\n', 'retry: 250\n\n'], (ms) => pauses.push(ms))
    expect(pauses).to.deep.equal([250])
  })

  it('refuses an event of more than 32 MiB characters, however it comes', async () => {
    const long = 'x'.repeat(32 * 1024 * 1024 - 'data: '.length)
    expect(await parse([`data: ${long}`])).to.deep.equal([])
    for (const texts of [[`data: ${long}x`], ['data: x\n', `data: ${long}`]])
      expect(await parse(texts).catch(String)).to.equal('RangeError: an event is too large')
  })

  it('takes CR and LF for one end of a line, also with a text of no characters between them', async () => {
    expect(await parse(['data: a\r', '', '\ndata: b\r\n\r', '\n'])).to.deep.equal([
      { id: '', event: 'message', data: 'a\nb' },
    ])
  })

  it('gives the same events wherever the text is divided and however its lines end', async () => {
    const lines = ['id: 1', 'event: a', 'data: x: y', '', ': c', 'data: two', 'data: ', '', 'id: 3', 'data', '', '']
    const expected = await parse([lines.join('\n')])
    const property = fc.asyncProperty(
      fc.constantFrom('\n', '\r', '\r\n'),
      fc.array(fc.nat({ max: 90 }), { maxLength: 12 }),
      async (newline, cuts) => {
        const text = lines.join(newline)
        const edges = [0, ...cuts.map((cut) => Math.min(cut, text.length)).toSorted((a, b) => a - b), text.length]
        const pieces = edges.slice(1).map((edge, i) => text.slice(edges[i], edge))
        expect(await parse(pieces)).to.deep.equal(expected)
      },
    )
    await fc.assert(property)
  })
})
