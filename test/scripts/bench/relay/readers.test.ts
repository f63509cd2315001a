import { expect } from 'chai'
import { FrameChecker } from '../../../../scripts/bench/relay/client/frame-checker.ts'
import { ResponseReader } from '../../../../scripts/bench/relay/client/response-reader.ts'
import {
  DONE,
  FRAME_BYTES,
  PreparedEvents,
  STAMP_END,
  stampAt,
} from '../../../../scripts/bench/relay/source/prepared-events.ts'
import { renderFrame } from '../../../../shared/cluster/journal/frames.ts'

const prepared = new PreparedEvents()
const FRAMES = Array.from({ length: 120 }, (_, i) => renderFrame(i + 1, prepared.next()))
const frame = (seq: number) => FRAMES[seq - 1] ?? ''

function check(...pieces: string[]): FrameChecker {
  const checker = new FrameChecker()
  for (const piece of pieces) {
    const bytes = Buffer.from(`??${piece}??`) // The shared buffer holds other bytes around a piece.
    checker.read(bytes, 2, bytes.length - 2)
  }
  return checker
}

describe('the relay bench’s frame checker', () => {
  it('every measured event is 112 bytes on the wire, whatever its id', () => {
    for (const each of FRAMES) expect(Buffer.byteLength(each)).to.equal(FRAME_BYTES)
  })

  it('an event with a timestamp has the same size, and its timestamp is at the expected offset', () => {
    const events = new PreparedEvents()
    for (let seq = 1; seq <= 12; seq++) {
      const before = process.hrtime.bigint()
      const text = renderFrame(seq, events.stamped())
      const at = stampAt(String(seq).length)
      expect(text).to.have.length(FRAME_BYTES)
      expect(BigInt(text.slice(at, at + STAMP_END)) >= before).to.equal(true)
    }
  })

  it('events in order with keepalives between them and the end after them have no error', () => {
    const checker = check(': ok\n', frame(1) + frame(2), ': keepalive\n: keepalive\n', frame(3), renderFrame(4, DONE))
    expect(checker).to.include({ events: 4, lost: 0, repeated: 0, lastEvent: 'done' })
  })

  it('the result is the same wherever the network splits the stream', () => {
    const stream = `: ok\n${frame(1)}${frame(2)}: keepalive\n${frame(3)}`
    for (let at = 0; at <= stream.length; at++) {
      expect(check(stream.slice(0, at), stream.slice(at)), `cut at ${at}`).to.include({
        events: 3,
        lost: 0,
        repeated: 0,
      })
    }
  })

  it('counts lost events by their ids, and events that come again or late as repeated', () => {
    expect(check(frame(1), frame(4))).to.include({ lost: 2, repeated: 0 })
    expect(check(frame(1), frame(1), frame(2))).to.include({ lost: 0, repeated: 1 })
    expect(check(frame(2), frame(1), frame(3))).to.include({ lost: 1, repeated: 1 })
  })

  it('an error event of the gateway repeats an id and does not count as repeated', () => {
    const error = 'id: 1\nevent: error\ndata: {"code":"slow_consumer"}\n\n'
    expect(check(frame(1), error)).to.include({ events: 1, repeated: 0, lastEvent: 'error' })
  })
})

const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n'
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`
const END = '0\r\n\r\n'

function read(...pieces: string[]) {
  const seen = { body: '', ends: [] as boolean[] }
  const reader = new ResponseReader({
    body: (bytes, from, to) => (seen.body += bytes.toString('latin1', from, to)),
    ended: (isClosing) => seen.ends.push(isClosing),
  })
  for (const piece of pieces) reader.read(Buffer.from(`${piece}rest of the buffer`), piece.length)
  return seen
}

describe('the relay bench’s response reader', () => {
  it('the bodies are the same wherever the network splits successive responses', () => {
    const long = 'x'.repeat(300)
    const wire = `${HEAD}${chunk('one ')}${chunk(long)}${END}${HEAD}${chunk('two')}${END}`
    for (let at = 0; at <= wire.length; at++) {
      const seen = read(wire.slice(0, at), wire.slice(at))
      expect(seen.body, `cut at ${at}`).to.equal(`one ${long}two`)
      expect(seen.ends).to.deep.equal([false, false])
    }
  })

  it('reports when the server closes the connection after a response', () => {
    expect(read(HEAD.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n') + END).ends).to.deep.equal([true])
  })

  it('a refusal is an error with the answer', () => {
    expect(() => read('HTTP/1.1 429 Too Many Requests\r\nContent-Length: 4\r\n\r\nbusy')).to.throw('429')
  })
})
