import { expect } from 'chai'
import fc from 'fast-check'
import { type SseEvent, SseParser } from '../../../shared/client/http/sse.ts'

const parse = (...texts: string[]): SseEvent[] => {
  const parser = new SseParser()
  return texts.flatMap((text) => parser.feed(text))
}

describe('the SSE parser of the client', () => {
  it('takes a field with and without a blank, and several data lines as one text', () => {
    expect(parse('event:a\ndata: one\ndata:two\ndata\n\n')).to.deep.equal([{ id: '', event: 'a', data: 'one\ntwo\n' }])
  })

  it('names an event without a name "message", and keeps the id for the events that name none', () => {
    expect(parse('id: 7\ndata: a\n\ndata: b\n\n')).to.deep.equal([
      { id: '7', event: 'message', data: 'a' },
      { id: '7', event: 'message', data: 'b' },
    ])
  })

  it('drops an event without data, one that is not complete, comments, unknown fields and ids with NUL', () => {
    expect(parse(': c\nevent: x\n\nfoo: 1\nid: 1\0\ndata: a\n\ndata: half\n')).to.deep.equal([
      { id: '', event: 'message', data: 'a' },
    ])
  })

  it('takes only whole numbers as the pause before a new connection', () => {
    const parser = new SseParser()
    parser.feed('retry: 1s\n\n')
    expect(parser.retryMs).to.equal(undefined)
    parser.feed('retry: 250\n\n')
    expect(parser.retryMs).to.equal(250)
  })

  it('gives the same events wherever the text is divided and however its lines end', () => {
    const lines = ['id: 1', 'event: a', 'data: x: y', '', ': c', 'data: two', 'data: ', '', 'id: 3', 'data', '', '']
    const expected = parse(lines.join('\n'))
    const property = fc.property(
      fc.constantFrom('\n', '\r', '\r\n'),
      fc.array(fc.nat({ max: 90 }), { maxLength: 12 }),
      (newline, cuts) => {
        const text = lines.join(newline)
        const edges = [0, ...cuts.map((cut) => Math.min(cut, text.length)).toSorted((a, b) => a - b), text.length]
        const pieces = edges.slice(1).map((edge, i) => text.slice(edges[i], edge))
        expect(parse(...pieces)).to.deep.equal(expected)
      },
    )
    fc.assert(property)
  })
})
