import { expect } from 'chai'
import { SseReader } from '../sse-reader.ts'
import { frame } from './fake-gateway.ts'

const TEXT = `: ok\n${frame(1, 'text_delta', { text: 'grüße 😀' })}: keepalive\n: keepalive\n${frame(2, 'done')}`

describe('the SSE reader of the chaos client', () => {
  it('D4.2: finds the same frames however the bytes are split', () => {
    const bytes = Buffer.from(TEXT)
    const whole = new SseReader().take(bytes)
    expect(whole.map(({ seq, event }) => `${seq} ${event}`)).to.deep.equal(['1 text_delta', '2 done'])
    for (let at = 1; at < bytes.length; at++) {
      const reader = new SseReader()
      const frames = [...reader.take(bytes.subarray(0, at)), ...reader.take(bytes.subarray(at))]
      expect(frames).to.deep.equal(whole)
      expect([reader.comments.length, reader.isIncomplete]).to.deep.equal([3, false])
    }
  })

  it('a comment at the end is no incomplete frame', () => {
    const reader = new SseReader()
    reader.take(Buffer.from(`${TEXT}: keepalive\n`))
    expect(reader.isIncomplete).to.equal(false)
  })

  it('reports an incomplete frame', () => {
    const reader = new SseReader()
    reader.take(Buffer.from(TEXT.slice(0, -1)))
    expect(reader.isIncomplete).to.equal(true)
  })

  it('gives frames of different content different digests', () => {
    const digests = [frame(1, 'text', { text: 'a' }), frame(1, 'text', { text: 'b' }), frame(1, 'text', { text: 'a' })]
      .flatMap((text) => new SseReader().take(Buffer.from(text)))
      .map(({ digest }) => digest)
    expect(digests[0]).to.equal(digests[2]).and.not.equal(digests[1])
  })

  for (const [name, text] of Object.entries({
    'fields in another order': 'event: done\nid: 1\ndata: {}\n\n',
    'no number': 'event: done\ndata: {}\n\n',
    'data in two lines': 'id: 1\nevent: done\ndata: {\ndata: }\n\n',
    'data that is not JSON': 'id: 1\nevent: done\ndata: {"a"\n\n',
  }))
    it(`D4.2: ${name} is not a frame`, () => {
      expect(() => new SseReader().take(Buffer.from(text))).to.throw()
    })
})
