import { expect } from 'chai'
import * as fc from 'fast-check'
import { MessageFilter } from '../proxy/message-filter.ts'
import { bulk, chunkSizes, cut, list, messageFrame, reply, subscribedFrame } from './replies.ts'

type Seen = { forwarded: Buffer[]; channels: string[]; subscribed: number; unreadable: number }

/** Sends chunks through a filter that drops the messages of channel `lost`. */
function filter(chunks: readonly Buffer[]): Seen {
  const seen: Seen = { forwarded: [], channels: [], subscribed: 0, unreadable: 0 }
  const through = new MessageFilter({
    keep({ channel }) {
      seen.channels.push(channel)
      return channel !== 'lost'
    },
    onSubscribed: () => void seen.subscribed++,
    onUnreadable: () => void seen.unreadable++,
    forward: (bytes) => void seen.forwarded.push(bytes),
  })
  for (const chunk of chunks) through.take(chunk)
  return seen
}

const LONG = Buffer.alloc(500, 'x')

describe('the message filter', () => {
  it('removes the dropped messages and nothing else, however the stream is split', () => {
    const message = fc
      .tuple(fc.boolean(), fc.uint8Array({ maxLength: 60 }))
      .map(([isLost, payload]) => ({ isLost, bytes: messageFrame('>', isLost ? 'lost' : 'kept', payload) }))
    const other = reply().map((bytes) => ({ isLost: false, bytes }))
    const stream = fc.array(fc.oneof(message, other), { minLength: 1, maxLength: 20 })
    fc.assert(
      fc.property(stream, chunkSizes(), (frames, sizes) => {
        const { forwarded } = filter(cut(Buffer.concat(frames.map(({ bytes }) => bytes)), sizes))
        const kept = frames.filter(({ isLost }) => !isLost).map(({ bytes }) => bytes)
        expect(Buffer.concat(forwarded).toString('hex')).to.equal(Buffer.concat(kept).toString('hex'))
      }),
      { numRuns: 300 },
    )
  })

  it('copies nothing: forwards views of the received bytes, adjacent frames as one', () => {
    const stream = ['a', 'b', 'lost', 'c', 'd'].map((channel) => messageFrame('>', channel, LONG))
    const chunk = Buffer.concat(stream)
    const { forwarded } = filter([chunk])
    expect(forwarded.map(({ length }) => length)).to.deep.equal(
      [stream, stream].map(() => 2 * (stream[0]?.length ?? 0)),
    )
    for (const bytes of forwarded) expect(bytes.buffer).to.equal(chunk.buffer)
  })

  it('holds back only what may be a message: an incomplete reply is forwarded at once', () => {
    const { forwarded } = filter([Buffer.from('$10\r\n12')])
    expect(Buffer.concat(forwarded).toString()).to.equal('$10\r\n12')
    expect(filter([Buffer.from('>3\r\n$7\r\nmess')]).forwarded).to.deep.equal([])
  })

  it('in RESP 2 a reply that looks like a message is one only after a confirmed subscription', () => {
    const look = list('*', [bulk('message'), bulk('lost'), bulk('a')])
    const data = list('*', [bulk('subscribe'), bulk('lost'), bulk('1')])
    for (const before of [[], [data]]) expect(filter([...before, look]).channels).to.deep.equal([])
    const { channels, forwarded, subscribed } = filter([subscribedFrame('*', 'lost'), look])
    expect([channels, forwarded.length, subscribed]).to.deep.equal([['lost'], 1, 1])
  })

  it('forwards bytes that are not RESP unchanged, after what was held back before them', () => {
    for (const garbage of ['garbage', 'HTTP/1.1 200 OK\r\n', '$?\r\n', '*?\r\n', '*1\r\n'.repeat(100)]) {
      const chunks = [Buffer.from('+OK\r\n*2\r\n:1\r\n'), Buffer.from(garbage), messageFrame('>', 'lost', LONG)]
      const { forwarded, unreadable } = filter(chunks)
      expect(Buffer.concat(forwarded).equals(Buffer.concat(chunks)), garbage).to.equal(true)
      expect(unreadable, garbage).to.equal(1)
    }
  })
})
