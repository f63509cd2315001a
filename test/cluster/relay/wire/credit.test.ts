import { expect } from 'chai'
import { acknowledgedPosition, Credit, creditOf } from '../../../../shared/cluster/relay/wire/credit.ts'
import { packMessage, RECORD, type ReceivedRecord, readMessage } from '../../../../shared/cluster/relay/wire/records.ts'

const KIB = 1024
const WORKER = 7
const OTHER = 8

describe('credit', () => {
  const acknowledged = (credit: Credit, kib: number, { isBeat = false, from = WORKER } = {}) => {
    const ack = credit.received(from, { position: kib * KIB, isBeat })
    return ack && acknowledgedPosition(ack) / KIB
  }

  it('bytes are acknowledged every 256 KiB, up to the end of the last message received', () => {
    const credit = new Credit()
    expect([100, 255, 300, 400, 556].map((kib) => acknowledged(credit, kib))).to.deep.equal([
      undefined,
      undefined,
      300,
      undefined,
      556,
    ])
  })

  it('exactly 256 KiB are acknowledged, one byte less is not', () => {
    const credit = new Credit()
    expect(credit.received(WORKER, { position: 256 * KIB - 1, isBeat: false })).to.equal(undefined)
    expect(credit.received(WORKER, { position: 256 * KIB, isBeat: false })).to.include({ type: RECORD.ack })
  })

  it('all senders together, each with a piece beyond its credit, stay below the 32 MB that Redis keeps for one subscriber', () => {
    for (const senders of [1, 2, 5, 8, 9, 50, 100, 384, 500]) {
      expect(senders * (creditOf(senders) + 64 * KIB), `${senders} senders`).to.be.below(32 * KIB * KIB)
    }
    expect([0, 1, 4, 9].map((senders) => creditOf(senders) / KIB)).to.deep.equal([4_096, 4_096, 4_096, 2_666.666015625])
    expect(creditOf(1_000)).to.equal(0)
  })

  it('a sender with little credit is acknowledged after a quarter of it, one without any after each message', () => {
    const credit = new Credit()
    credit.setCredit(100 * KIB)
    expect([24, 25, 49, 50].map((kib) => acknowledged(credit, kib))).to.deep.equal([undefined, 25, undefined, 50])
    credit.setCredit(0)
    expect([51, 52].map((kib) => acknowledged(credit, kib))).to.deep.equal([51, 52])
  })

  it('each heartbeat is acknowledged, so a sender does not wait for ever for a lost acknowledgement', () => {
    const credit = new Credit()
    expect(acknowledged(credit, 4_096)).to.equal(4_096)
    expect(acknowledged(credit, 4_097)).to.equal(undefined)
    expect(acknowledged(credit, 4_098, { isBeat: true })).to.equal(4_098)
    expect(acknowledged(credit, 4_099, { isBeat: true })).to.equal(4_099)
  })

  it('a heartbeat’s acknowledgement counts: the next one is due 256 KiB later', () => {
    const credit = new Credit()
    expect(acknowledged(credit, 200, { isBeat: true })).to.equal(200)
    expect(acknowledged(credit, 455)).to.equal(undefined)
    expect(acknowledged(credit, 456)).to.equal(456)
  })

  it('an acknowledged position does not go back when an older message comes late', () => {
    const credit = new Credit()
    expect(acknowledged(credit, 300)).to.equal(300)
    expect(acknowledged(credit, 200, { isBeat: true })).to.equal(300)
  })

  it('each sender is counted by itself, and from 0 when it was forgotten', () => {
    const credit = new Credit()
    expect(acknowledged(credit, 300)).to.equal(300)
    expect(acknowledged(credit, 400, { from: OTHER })).to.equal(400)
    credit.forget(WORKER)
    expect([acknowledged(credit, 300), acknowledged(credit, 410, { from: OTHER })]).to.deep.equal([300, undefined])
    credit.clear()
    expect([acknowledged(credit, 300), acknowledged(credit, 410, { from: OTHER })]).to.deep.equal([300, 410])
  })

  it('a position of terabytes is carried exactly', () => {
    for (const position of [2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1, 2 ** 42 + 3, 2 ** 48 - 1]) {
      const ack = new Credit().received(WORKER, { position, isBeat: true })
      const received: ReceivedRecord[] = []
      readMessage(packMessage(1, 0, ack ? [ack] : []), (each) => received.push(each))
      expect(received.map(acknowledgedPosition)).to.deep.equal([position])
    }
  })
})
