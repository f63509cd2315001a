import { expect } from 'chai'
import { type Dialect, GATEWAY, PROVIDER } from '../../../scripts/bench/dialect.ts'
import { StreamReader } from '../../../scripts/bench/stream-reader.ts'

const delta = (n: number) => `id: ${n + 1}\nevent: text_delta\ndata: {"text":"${n} "}\n\n`
const done = 'id: 9\nevent: done\ndata: {"turn_count":1}\n\n'
const chunk = (json: string) => `data: {"choices":[{"index":0,"delta":${json},"finish_reason":null}]}\n\n`

function readerOf(dialect: Dialect, ...chunks: string[]): StreamReader {
  const reader = new StreamReader(dialect)
  for (const each of chunks) reader.read(each)
  return reader
}

describe('the bench’s stream reader', () => {
  it('the result is the same wherever the network splits the stream', () => {
    const stream = `: ok\n${delta(1)}${delta(2)}${delta(3)}${done}`
    for (let at = 0; at <= stream.length; at += 1) {
      const reader = readerOf(GATEWAY, stream.slice(0, at), stream.slice(at))
      expect(reader.isComplete(3)).to.equal(true)
      expect(reader.events).to.equal(3)
    }
  })

  it('a stream without its end, with a token lost, repeated or out of order, or with an incomplete frame is not complete', () => {
    const broken = [
      [delta(1), delta(2)],
      [delta(2), done],
      [delta(1), delta(1), delta(2), done],
      [delta(2), delta(1), done],
      [delta(1), delta(2), done, 'event: te'],
      [delta(1), delta(2), 'event: error\ndata: {"error":"event: done"}\n\n'],
    ]
    for (const stream of broken) expect(readerOf(GATEWAY, ...stream).isComplete(2), stream.join('')).to.equal(false)
  })

  it('a stream with the tokens of two answers is complete with both of them', () => {
    const answer = `${delta(1)}${delta(2)}`
    expect(readerOf(GATEWAY, answer, answer, done).isComplete(2, 2)).to.equal(true)
    expect(readerOf(GATEWAY, answer, done).isComplete(2, 2)).to.equal(false)
  })

  it('the provider’s first chunk, which has no text, does not count as a text event', () => {
    const opening = chunk('{"role":"assistant","content":""}')
    expect(readerOf(PROVIDER, opening).events).to.equal(0)
    const stream = [opening, chunk('{"content":"1 "}'), 'data: [DONE]\n\n']
    expect(readerOf(PROVIDER, ...stream).isComplete(1)).to.equal(true)
  })
})
