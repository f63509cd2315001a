import { expect } from 'chai'
import { renderFrame } from '../../../shared/cluster/journal/frames.ts'
import { errorEvent } from '../../../shared/kernel/events.ts'
import { Random } from '../../harness/seed.ts'
import { Chain } from '../scenarios/lossy-relay/chain.ts'
import { ChainReader } from '../scenarios/lossy-relay/chain-reader.ts'
import { detectForgeries, eventsOf, FAULTS, forge } from '../scenarios/lossy-relay/forgeries.ts'

const COUNT = 10
const events = eventsOf('c', COUNT)
const whole = events.map((event, i) => renderFrame(i + 1, event)).join('')

function read(...connections: string[]): ChainReader {
  const reader = new ChainReader('c', COUNT)
  for (const text of connections) {
    reader.resume()
    reader.read(text)
  }
  return reader
}

const faultsOf = ({ faults }: ChainReader) => [...new Set(faults.map(({ fault }) => fault))]

describe('the reader that checks P4', () => {
  it('P4: accepts a stream that equals what was produced, however its bytes are split', () => {
    const reader = new ChainReader('c', COUNT)
    for (const letter of `: ok\n: keepalive\n${whole}`) reader.read(letter)
    expect(faultsOf(reader)).to.deep.equal([])
    expect(reader.isWhole).to.equal(true)
    expect(reader.frames).to.equal(COUNT + 3)
  })

  for (const fault of FAULTS)
    for (const isRenumbered of [false, true])
      it(`P4: detects a ${fault} ${isRenumbered ? 'that the numbers of the frames do not reveal' : 'that the numbers of the frames reveal'}`, () => {
        const reader = read(forge(events, fault, { at: 4, isRenumbered }))
        expect(faultsOf(reader)).to.include(fault)
      })

  it('P4: reports a block that differs from its pieces as a change', () => {
    const other = events.map((event) => (event.type === 'text' ? { ...event, text: 'other' } : event))
    const reader = read(other.map((event, i) => renderFrame(i + 1, event)).join(''))
    expect(faultsOf(reader)).to.deep.equal(['change'])
  })

  it('D4.2: continues after its last frame when it was disconnected, without the incomplete frame', () => {
    const frames = events.map((event, i) => renderFrame(i + 1, event))
    const cut = `${frames.slice(0, 5).join('')}${renderFrame(5, errorEvent('relay_unavailable', 'x'))}`
    const half = `${frames.slice(5, 7).join('')}${frames[7]?.slice(0, 20)}`
    const reader = read(cut, half, frames.slice(7).join(''))
    expect(faultsOf(reader)).to.deep.equal([])
    expect(reader.isWhole).to.equal(true)
  })

  it('P4: a stream without its end is not complete', () => {
    const reader = read(whole.slice(0, whole.lastIndexOf('id: ')))
    expect(faultsOf(reader)).to.deep.equal([])
    expect(reader.isWhole).to.equal(false)
  })

  it('reports a frame after the terminal event', () => {
    expect(faultsOf(read(`${whole}${renderFrame(COUNT + 4, { type: 'text_delta', text: 'x' })}`))).to.include('change')
  })

  it('P4: detects all of 1,000 altered streams and accepts intact ones', () => {
    expect(detectForgeries(new Random(1), 1_000)).to.deep.equal({ found: 1_000, passed: true })
  })

  it('chains of different names have different pieces', () => {
    expect(new Chain('a').next()).to.not.equal(new Chain('b').next())
  })
})
