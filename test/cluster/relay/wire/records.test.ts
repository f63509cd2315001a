import { expect } from 'chai'
import fc from 'fast-check'
import {
  BY_WORKER,
  END_OF_FRAME,
  LAST,
  MalformedMessage,
  packMessage,
  RECORD,
  type ReceivedRecord,
  readMessage,
  record,
  sizeOf,
  type WireRecord,
} from '../../../../shared/cluster/relay/wire/records.ts'

function unpack(message: Buffer) {
  const records: ReceivedRecord[] = []
  return { head: readMessage(message, (each) => records.push(each)), records }
}

describe('records', () => {
  it('a message is read as it was packed, whatever it contains', () => {
    const u32 = fc.integer({ min: 0, max: 0xffffffff })
    const any = fc.record({
      type: fc.constantFrom(...Object.values(RECORD)),
      stream: u32,
      seq: u32,
      count: fc.integer({ min: 0, max: 0xffff }),
      flags: fc.integer({ min: 0, max: 255 }),
      body: fc.oneof(fc.string({ unit: 'grapheme' }), fc.uint8Array()),
    })
    fc.assert(
      fc.property(u32, fc.nat(), fc.array(any), (epoch, before, sent) => {
        const message = packMessage(epoch, before, sent)
        const { head, records } = unpack(message)
        expect(head).to.deep.equal({ epoch, position: before + message.length })
        expect(records.map(({ body, ...rest }) => ({ ...rest, body: body.toString('hex') }))).to.deep.equal(
          sent.map(({ body, ...rest }) => ({ ...rest, body: Buffer.from(body as string).toString('hex') })),
        )
      }),
    )
  })

  it('the bytes of a message are as documented: little-endian, head of 13 bytes, 16 bytes and the body for each record', () => {
    const each = { stream: 0x01020304, seq: 0x05060708, count: 0x090a, flags: LAST, body: 'hé' }
    const message = packMessage(0x0b0c0d0e, 100, [record(RECORD.gap, each)])
    const position = Buffer.alloc(8)
    position.writeDoubleLE(100 + 13 + 16 + 3)
    expect(message.toString('hex')).to.equal(
      [
        '02',
        '0e0d0c0b',
        position.toString('hex'),
        '04030201',
        '08070605',
        '0a09',
        '01',
        '01',
        '03000000',
        '68c3a9',
      ].join(''),
    )
  })

  it('each record type and flag has a fixed number', () => {
    expect(RECORD).to.deep.equal({
      frames: 0,
      gap: 1,
      beat: 2,
      call: 3,
      reply: 4,
      ack: 5,
      resend: 6,
      detach: 7,
      readPosition: 8,
      askReadPosition: 9,
      piece: 10,
      working: 11,
    })
    expect([LAST, BY_WORKER, END_OF_FRAME]).to.deep.equal([1, 1, 2])
  })

  it('a record is empty unless something is given', () => {
    const empty = { stream: 0, seq: 0, count: 0, flags: 0, body: '' }
    expect(record(RECORD.ack)).to.deep.equal({ type: RECORD.ack, ...empty })
    expect(record(RECORD.ack, { seq: 5 })).to.deep.equal({ type: RECORD.ack, ...empty, seq: 5 })
  })

  it('the size of a record counts the bytes of its body, not its characters', () => {
    expect([record(0), record(0, { body: 'hé' }), record(0, { body: Buffer.from('hé') })].map(sizeOf)).to.deep.equal([
      16, 19, 19,
    ])
  })

  const MAXIMA = { stream: 0xffffffff, seq: 0xffffffff, count: 0xffff, flags: 0xff }

  it('every field is carried at its maximum', () => {
    const sent = { ...record(RECORD.frames, MAXIMA), type: 0xff as WireRecord['type'] }
    const { head, records } = unpack(packMessage(0xffffffff, Number.MAX_SAFE_INTEGER - 29, [sent]))
    expect(head).to.deep.equal({ epoch: 0xffffffff, position: Number.MAX_SAFE_INTEGER })
    expect(records).to.deep.equal([{ ...sent, body: Buffer.alloc(0) }])
  })

  for (const field of Object.keys(MAXIMA) as (keyof typeof MAXIMA)[]) {
    it(`a record whose ${field} does not fit is refused instead of cut to its low bits`, () => {
      for (const value of [MAXIMA[field] + 1, -1]) {
        expect(() => packMessage(1, 0, [record(RECORD.frames, { [field]: value })])).to.throw(RangeError)
      }
    })
  }

  it('an epoch above u32 is refused', () => {
    expect(() => packMessage(2 ** 32, 0, [])).to.throw(RangeError)
  })

  it('a message without records is only its head', () => {
    expect(unpack(packMessage(3, 8, []))).to.deep.equal({ head: { epoch: 3, position: 21 }, records: [] })
  })

  it('a body that claims to be longer than the message is refused, one that ends with it is not', () => {
    const message = packMessage(1, 0, [record(RECORD.frames, { body: 'hello' })])
    expect(unpack(message).records.map(({ body }) => String(body))).to.deep.equal(['hello'])
    message.writeUInt32LE(6, 13 + 12)
    expect(() => unpack(message)).to.throw(MalformedMessage, 'longer than its message')
  })

  it('a message that is cut anywhere, or has another version, is malformed', () => {
    const message = packMessage(1, 0, [record(RECORD.frames, { body: 'hello' })])
    for (let size = 0; size < message.length; size++) {
      if (size !== 13) expect(() => unpack(message.subarray(0, size)), String(size)).to.throw(MalformedMessage)
    }
    message[0] = 1
    expect(() => unpack(message)).to.throw(MalformedMessage, 'another version')
  })
})
