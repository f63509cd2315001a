import { expect } from 'chai'
import * as fc from 'fast-check'
import { FrameScanner, RespError, readPubSub } from '../resp.ts'
import { bulk, chunkSizes, cut, list, messageFrame, reply, subscribedFrame } from './replies.ts'

/** The frames that a scanner finds. */
function framesOf(chunks: readonly Buffer[]): Buffer[] {
  const scanner = new FrameScanner()
  const frames: Buffer[] = []
  let begun: Buffer[] = []
  for (const chunk of chunks) {
    let at = 0
    while (at < chunk.length) {
      const end = scanner.endOf(chunk, at)
      begun.push(chunk.subarray(at, end < 0 ? chunk.length : end))
      if (end < 0) break
      frames.push(Buffer.concat(begun))
      begun = []
      at = end
    }
  }
  expect(begun, 'an incomplete frame at the end').to.have.lengthOf(0)
  return frames
}

const hex = (frames: readonly Buffer[]) => frames.map((frame) => frame.toString('hex'))

describe('RESP frames', () => {
  it('are the same however the stream is split, for every type and nesting', () => {
    fc.assert(
      fc.property(fc.array(reply(), { minLength: 1, maxLength: 12 }), chunkSizes(), (stream, sizes) => {
        expect(hex(framesOf(cut(Buffer.concat(stream), sizes)))).to.deep.equal(hex(stream))
      }),
      { numRuns: 300 },
    )
  })

  it('are the same byte by byte as in one piece', () => {
    const stream = [
      subscribedFrame('>', 'c'),
      messageFrame('>', 'c', Buffer.alloc(300, 0x0a)),
      Buffer.from('+PONG\r\n'),
    ]
    expect(hex(framesOf(cut(Buffer.concat(stream), [1])))).to.deep.equal(hex(stream))
  })

  it('a large string is skipped, whatever it contains', () => {
    const stream = [bulk(Buffer.alloc(3_000_000, '>3\r\n$7\r\nmessage\r\n')), Buffer.from(':1\r\n')]
    expect(framesOf(cut(Buffer.concat(stream), [65_536])).map(({ length }) => length)).to.deep.equal([
      stream[0]?.length,
      stream[1]?.length,
    ])
  })

  it('bytes that no Redis sends are an error: an unknown type, a streamed string, unlimited nesting', () => {
    for (const bytes of ['HTTP/1.1 200 OK\r\n', '$?\r\n', '*?\r\n', '*1\r\n'.repeat(100)])
      expect(() => new FrameScanner().endOf(Buffer.from(bytes), 0), bytes).to.throw(RespError)
  })
})

describe('pub/sub frames', () => {
  const payload = Buffer.from([0, 255, 13, 10, 36])

  it('a message is parsed from a RESP 3 push and a RESP 2 array, with its exact payload', () => {
    for (const type of ['>', '*'] as const)
      expect(readPubSub(messageFrame(type, 'ae:gw:1', payload))).to.deep.equal({
        kind: 'message',
        channel: 'ae:gw:1',
        payload,
      })
  })

  it('a message of a pattern subscription has the channel, not the pattern', () => {
    const frame = list('>', [bulk('pmessage'), bulk('ae:*'), bulk('ae:gw:1'), bulk(payload)])
    expect(readPubSub(frame)).to.deep.equal({ kind: 'pmessage', channel: 'ae:gw:1', payload })
  })

  it('a message may have an empty payload', () => {
    expect(readPubSub(messageFrame('>', '', Buffer.alloc(0)))).to.deep.equal({
      kind: 'message',
      channel: '',
      payload: Buffer.alloc(0),
    })
  })

  it('a confirmed subscription is distinguished from data with the same words', () => {
    expect(readPubSub(subscribedFrame('*', 'c'))).to.equal('subscribed')
    expect(readPubSub(list('*', [bulk('subscribe'), bulk('c'), bulk('1')]))).to.equal(undefined)
  })
})
