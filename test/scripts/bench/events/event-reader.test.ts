import { expect } from 'chai'
import { EventReader } from '../../../../scripts/bench/events/event-reader.ts'
import { resetFrame } from '../../../../shared/tenancy/events/event-text.ts'

const AFTER = { generation: 7, n: 4 }
const TIME = '2026-11-22T10:00:00.250Z'
const event = (id: string, at = TIME) => `id: ${id}\nevent: run.ended\ndata: {"run_id":"run_1","at":"${at}"}\n\n`

function readerOf(...chunks: string[]) {
  const times: number[] = []
  const reader = new EventReader(AFTER, (at) => times.push(at))
  for (const chunk of chunks) reader.read(chunk)
  return { reader, times }
}

describe('the event bench’s reader', () => {
  it('the result is the same wherever the network splits the stream', () => {
    const later = '2026-11-22T10:00:01.000Z'
    const stream = `: ok\n${event('7-5')}: keepalive\n: keepalive\n${event('7-6', later)}: keepalive\n`
    for (let at = 0; at <= stream.length; at++) {
      const { reader, times } = readerOf(stream.slice(0, at), stream.slice(at))
      expect(reader).to.include({ isOpen: true, faults: 0 })
      expect(reader.isAt('7-6')).to.equal(true)
      expect(times).to.deep.equal([Date.parse(TIME), Date.parse(later)])
    }
  })

  it('is open only after the first comment, and begins behind the position it was given', () => {
    expect(readerOf(': ok').reader.isOpen).to.equal(false)
    const { reader } = readerOf(': ok\n')
    expect(reader.isOpen).to.equal(true)
    expect(reader.isAt('7-4')).to.equal(true)
  })

  it('an event that is lost, repeated, out of order or of another generation is a fault, and so is a reset', () => {
    const broken = [
      [event('7-6')],
      [event('7-5'), event('7-7')],
      [event('7-5'), event('7-5')],
      [event('7-5'), event('8-6')],
      [event('7-5'), resetFrame({ generation: 7, n: 6 })],
      [event('7-5'), 'event: run.ended\ndata: {}\n\n'],
    ]
    for (const stream of broken) expect(readerOf(': ok\n', ...stream).reader.faults, stream.join('')).to.equal(1)
    expect(readerOf(': ok\n', event('7-6'), event('7-5')).reader.faults).to.equal(2)
  })
})
