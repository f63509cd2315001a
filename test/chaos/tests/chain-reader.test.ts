import { expect } from 'chai'
import { renderFrame } from '../../../shared/broker/journal/frames.ts'
import { errorEvent } from '../../../shared/events.ts'
import { Random } from '../../harness/seed.ts'
import { Chain } from '../scenarios/lossy-relay/chain.ts'
import { ChainReader } from '../scenarios/lossy-relay/chain-reader.ts'
import { eventsOf, FAULTS, forge, provedBy } from '../scenarios/lossy-relay/forgeries.ts'

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

describe('the chain that P4 is judged by', () => {
  it('P4: a stream that is what was produced has no fault and is whole, however its bytes are cut', () => {
    const reader = new ChainReader('c', COUNT)
    for (const letter of `: ok\n\n${whole}`) reader.read(letter)
    expect(faultsOf(reader)).to.deep.equal([])
    expect(reader.isWhole).to.equal(true)
    expect(reader.frames).to.equal(COUNT + 3)
  })

  for (const fault of FAULTS)
    for (const isRenumbered of [false, true])
      it(`P4: a ${fault} is found and named, ${isRenumbered ? 'though the frames are numbered as if nothing were' : 'also by the numbers'}`, () => {
        const reader = read(forge(events, fault, { at: 4, isRenumbered }))
        expect(faultsOf(reader)).to.include(fault)
      })

  it('P4: a block that is not what its pieces make is a change', () => {
    const other = events.map((event) => (event.type === 'text' ? { ...event, text: 'other' } : event))
    const reader = read(other.map((event, i) => renderFrame(i + 1, event)).join(''))
    expect(faultsOf(reader)).to.deep.equal(['change'])
  })

  it('D4.2: a reader that was cut off and told so goes on behind its last frame, half a frame forgotten', () => {
    const frames = events.map((event, i) => renderFrame(i + 1, event))
    const cut = `${frames.slice(0, 5).join('')}${renderFrame(5, errorEvent('relay_unavailable', 'x'))}`
    const half = `${frames.slice(5, 7).join('')}${frames[7]?.slice(0, 20)}`
    const reader = read(cut, half, frames.slice(7).join(''))
    expect(faultsOf(reader)).to.deep.equal([])
    expect(reader.isWhole).to.equal(true)
  })

  it('P4: a stream whose end never comes is not whole', () => {
    const reader = read(whole.slice(0, whole.lastIndexOf('id: ')))
    expect(faultsOf(reader)).to.deep.equal([])
    expect(reader.isWhole).to.equal(false)
  })

  it('design §7.1: a frame behind the terminal event is a fault', () => {
    expect(faultsOf(read(`${whole}${renderFrame(COUNT + 4, { type: 'text_delta', text: 'x' })}`))).to.include('change')
  })

  it('P4: every one of 1,000 forged streams is found out, and no good one is', () => {
    expect(provedBy(new Random(1), 1_000)).to.deep.equal({ found: 1_000, passed: true })
  })

  it('a chain of another name has other pieces', () => {
    expect(new Chain('a').next()).to.not.equal(new Chain('b').next())
  })
})
