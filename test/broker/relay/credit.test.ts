import { expect } from 'chai'
import { acknowledgedPosition, Credit } from '../../../shared/broker/relay/credit.ts'

const KIB = 1024
const WORKER = 7

describe('credit', () => {
  const told = (credit: Credit, kib: number, isBeat = false) => {
    const ack = credit.received(WORKER, { position: kib * KIB, isBeat })
    return ack && acknowledgedPosition(ack) / KIB
  }

  it('design §4.4: a sender is told of its bytes every 256 KiB, up to the last message that came', () => {
    const credit = new Credit()
    expect([100, 255, 300, 400, 556].map((kib) => told(credit, kib))).to.deep.equal([
      undefined,
      undefined,
      300,
      undefined,
      556,
    ])
  })

  it('design §4.4: what was told once and lost is told again with each heartbeat, or a sender without credit would wait for ever', () => {
    const credit = new Credit()
    expect(told(credit, 4_096)).to.equal(4_096)
    expect(told(credit, 4_097)).to.equal(undefined)
    expect(told(credit, 4_098, true)).to.equal(4_098)
    expect(told(credit, 4_099, true)).to.equal(4_099)
  })

  it('a position of terabytes comes through', () => {
    const position = 2 ** 42 + 3
    const ack = new Credit().received(WORKER, { position, isBeat: false })
    expect(ack && acknowledgedPosition(ack)).to.equal(position)
  })
})
