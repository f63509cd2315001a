import { expect } from 'chai'
import fc from 'fast-check'
import { EventParser, LineParser, type StreamParser } from '../../../shared/platform/net/event-parser.ts'

type Parser = new (onUnit: (text: string) => void) => StreamParser

/** The events that a parser reports of these chunks. */
function read(Parser: Parser, ...chunks: (string | Uint8Array)[]): string[] {
  const found: string[] = []
  const parser = new Parser((text) => found.push(text))
  for (const chunk of chunks) parser.push(Buffer.from(chunk))
  parser.end()
  return found
}

/** The text in UTF-8, divided at these places. */
function pieces(text: string, cuts: readonly number[]): Uint8Array[] {
  const bytes = Buffer.from(text)
  const edges = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length]
  return edges.slice(1).map((edge, i) => bytes.subarray(edges[i], edge))
}

const CUTS = fc.array(fc.nat({ max: 500 }), { maxLength: 12 })

describe('the parser of an event stream', () => {
  it('reports the data of each event, several data lines as one text, and leaves one blank behind the colon out', () => {
    expect(read(EventParser, 'data: a\ndata:b\ndata:  c\n\ndata:\n\n')).to.deep.equal(['a\nb\n c', ''])
  })

  it('ignores comments, other fields, and events without data', () => {
    expect(read(EventParser, ': c\nid: 7\nevent: x\nretry: 5\n\ndatabase: no\n\n\n\ndata: a\n\n')).to.deep.equal(['a'])
  })

  it('reports a last event without the blank line behind it, and without a line feed', () => {
    expect(read(EventParser, 'data: a\n\ndata: b\n')).to.deep.equal(['a', 'b'])
    expect(read(EventParser, 'data: a\n\ndata: b')).to.deep.equal(['a', 'b'])
  })

  it('reports the same wherever the bytes are divided, within a character too, and however lines end', () => {
    const lines = ['data: größer 🦉', ': c', '', 'id: 1', 'data: x: y', 'data: ', '', '', 'data: ende', '', '']
    fc.assert(
      fc.property(fc.constantFrom('\n', '\r\n', '\r'), CUTS, (newline, cuts) => {
        expect(read(EventParser, ...pieces(lines.join(newline), cuts))).to.deep.equal(['größer 🦉', 'x: y\n', 'ende'])
      }),
    )
  })
})

describe('a byte order mark at the start of a stream', () => {
  it('hides neither the first event nor the first line, and is text further on', () => {
    const events = [Buffer.from('\uFEFF').subarray(0, 1), Buffer.from('\uFEFFdata: a\n\ndata: \uFEFFb\n\n').subarray(1)]
    expect(read(EventParser, ...events)).to.deep.equal(['a', '\uFEFFb'])
    expect(read(EventParser, '\uFEFFdata: a')).to.deep.equal(['a'])
    expect(read(LineParser, '\uFEFF{"a":1}\n\uFEFFb\n')).to.deep.equal(['{"a":1}', '\uFEFFb'])
  })
})

describe('the parser of lines', () => {
  it('reports each line that is not blank, and the last one without a line feed', () => {
    expect(read(LineParser, '{"a":1}\n\n \r\n{"b":2}\nrest')).to.deep.equal(['{"a":1}', '{"b":2}', 'rest'])
  })

  it('reports the same wherever the bytes are divided', () => {
    fc.assert(
      fc.property(CUTS, (cuts) => {
        expect(read(LineParser, ...pieces('größer 🦉\n\nzwei\ndrei\n', cuts))).to.deep.equal([
          'größer 🦉',
          'zwei',
          'drei',
        ])
      }),
    )
  })
})
