import { expect } from 'chai'
import fc from 'fast-check'
import { packMessage, RECORD, type ReceivedRecord, readMessage, record } from '../../../shared/broker/relay/records.ts'

function unpack(message: Buffer) {
  const records: ReceivedRecord[] = []
  return { head: readMessage(message, (each) => records.push(each)), records }
}

describe('records', () => {
  it('a message is read as it was packed, whatever is in it', () => {
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

  it('a message that was cut is refused', () => {
    const message = packMessage(1, 0, [record(RECORD.frames, { body: 'hello' })])
    for (const length of [0, 5, 13, 20, message.length - 1]) {
      expect(() => unpack(message.subarray(0, length)), `${length} bytes`).to.throw(RangeError)
    }
  })
})
