import { expect } from 'chai'
import { withAttachments } from '../../../services/gateway/starting/attach.ts'
import type { FileRecord } from '../../../shared/agent/files/records.ts'
import type { Broker } from '../../../shared/cluster/commands/broker.ts'
import type { MessageRequest } from '../../../shared/cluster/commands/sessions.ts'
import { notFound } from '../../../shared/kernel/errors.ts'
import { sha256Of } from '../../../shared/platform/objects/content.ts'
import { tenantId } from '../../support/tenant.ts'

const TENANT = tenantId('acme')
const MB = 1024 * 1024

const recordOf = (fields: Partial<FileRecord> = {}): FileRecord => ({
  ...{
    file_id: 'file_1',
    name: 'a.png',
    media_type: 'image/png',
    bytes: 10,
    sha256: '',
    created_at: '',
    expires_at: '',
  },
  ...fields,
})

/** A broker behind attachments whose files are these, and what it was asked for. */
function brokerOf(records: Record<string, Partial<FileRecord>> = {}) {
  const sent: MessageRequest[] = []
  const fetched: string[] = []
  const kept: string[] = []
  const hashes: string[] = []
  const plain = {
    sendMessage: async (_tenant: unknown, _id: unknown, message: MessageRequest) => sent.push(message),
  } as unknown as Broker
  const broker = withAttachments(plain, {
    files: {
      async get(_tenant, id) {
        const found = records[id]
        if (!found) throw notFound(`no file ${id}`)
        return recordOf({ file_id: id, ...found })
      },
      async keep(_tenant, { name, bytes, sha256 }) {
        kept.push(name)
        hashes.push(sha256)
        return recordOf({ name, bytes })
      },
    },
    async fetchFile(url) {
      fetched.push(url)
      return { content: Buffer.from('x'), name: 'fetched.png' }
    },
  })
  const send = (message: Partial<MessageRequest>) => broker.sendMessage(TENANT, 's', { prompt: 'hi', ...message })
  return { send, sent, fetched, kept, hashes }
}

describe('withAttachments', () => {
  it('D47.2: hands on ids, names and sizes alone, and fetches an address once, however often the message is sent', async () => {
    const { send, sent, fetched } = brokerOf({ file_2: { name: 'b.pdf', media_type: 'application/pdf' } })
    const message = { attachments: [{ file_id: 'file_2' }, { url: 'https://example.com/a.png' }] }
    await send(message)
    await send({ ...message, path: [] })
    expect(fetched).to.have.length(1)
    const forged = { file_id: 'file_3', name: '../../x', media_type: 'image/png', bytes: 1 }
    await send({ files: [forged], seed: [{ role: 'user', content: 'hi', files: [forged] }] })
    expect(sent.pop()).to.deep.equal({ prompt: 'hi', seed: [{ role: 'user', content: 'hi' }] })
    expect(sent[1]).to.deep.equal({
      ...{ prompt: 'hi', path: [] },
      files: [
        { file_id: 'file_2', name: 'b.pdf', media_type: 'application/pdf', bytes: 10 },
        { file_id: 'file_1', name: 'fetched.png', media_type: 'image/png', bytes: 1 },
      ],
    })
  })

  it('D47.2: data of 5 MB are decoded and hashed in steps, whole, and refused where one character of them is wrong', async () => {
    const { send, kept, hashes } = brokerOf()
    const bytes = Buffer.alloc(5 * MB, 'abcdefg')
    const data = bytes.toString('base64')
    let steps = 0
    const count = () => {
      steps++
      running = setImmediate(count)
    }
    let running = setImmediate(count)
    await send({ attachments: [{ data }] })
    clearImmediate(running)
    expect(steps).to.be.at.least(11)
    expect(kept.pop()).to.equal('file')
    expect(sha256Of(bytes)).to.equal(hashes.pop())
    for (const wrong of [`${data.slice(0, 2 * MB)}=${data.slice(2 * MB + 1)}`, `${data.slice(0, -5)}!aaaa`])
      await send({ attachments: [{ data: wrong }] }).then(
        () => expect.fail('it should be refused'),
        (cause: { param: string }) => expect(cause.param).to.equal('/attachments/0/data'),
      )
  })

  it('D47.2: names data without a name by its media type', async () => {
    const { send, kept } = brokerOf()
    const types = ['image/jpeg', 'text/csv', 'application/vnd.ms-excel', '../../x', undefined]
    for (const media_type of types) await send({ attachments: [{ data: 'AAAA', ...(media_type && { media_type }) }] })
    expect(kept).to.deep.equal(['file.jpg', 'file.csv', 'file', 'file', 'file'])
  })

  it('D47.4: refuses what no model may get: too large images, too many pixels, and too much together', async () => {
    const { send, sent } = brokerOf({
      large: { bytes: 5 * MB + 1 },
      bomb: { width: 5_000, height: 4_000 },
      photo: { width: 4_000, height: 4_000, bytes: 5 * MB },
      book: { media_type: 'application/pdf', bytes: 18 * MB },
      archive: { media_type: 'application/zip' },
    })
    for (const ids of [['large'], ['bomb'], ['archive'], ['photo', 'book']]) {
      const attachments = ids.map((file_id) => ({ file_id }))
      const cause: unknown = await send({ attachments }).catch((error: unknown) => error)
      const param = `/attachments/${ids.length - 1}`
      expect(cause, ids.join()).to.include({ status: 400, code: 'unsupported_attachment', param })
    }
    await send({ attachments: [{ file_id: 'photo' }] })
    expect(sent).to.have.length(1)
  })
})
