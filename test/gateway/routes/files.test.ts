import { join } from 'node:path'
import { expect } from 'chai'
import { createReceiveUpload } from '../../../services/gateway/bodies/upload.ts'
import { Files } from '../../../shared/agent/files/files.ts'
import type { FileRecord } from '../../../shared/agent/files/records.ts'
import { invalidRequest } from '../../../shared/kernel/errors.ts'
import { openDisk } from '../../../shared/platform/objects/disk.ts'
import { useTempFolder } from '../../support/temp-folder.ts'
import { tenantId } from '../../support/tenant.ts'
import { useTestStore } from '../../support/test-store.ts'
import { type Gateway, refusalOf, useGateways } from '../setup.ts'

const TEXT = 'hello world'
const UNKNOWN = `file_${'0'.repeat(32)}`

describe('the routes of files', () => {
  const start = useGateways({ perTest: false })
  const folder = useTempFolder()
  const store = useTestStore()
  let gateway: Gateway
  let file: FileRecord

  before(async () => {
    const files = new Files(store.store, await openDisk(join(folder.path, 'objects')))
    gateway = await start({
      files: {
        files,
        receive: createReceiveUpload(folder.path),
        fetchFile: () => Promise.reject(invalidRequest('nothing is fetched here')),
      },
      identify: async (tenant = 'acme') => ({ tenant: tenantId(tenant), subject: 'ada' }),
    })
    file = (await (await send('/files?name=a.txt', { method: 'POST', body: TEXT })).json()) as FileRecord
  })

  const send = (path: string, init?: RequestInit) => fetch(gateway.url + path, init)
  const content = (headers: Record<string, string>, method = 'GET') =>
    send(`/files/${file.file_id}/content`, { method, headers })

  it('D43: a name is that of the query, else that of the form, and stands without a folder', async () => {
    for (const [query, name] of [
      ['?name=pl%C3%A4n.pdf', 'plän.pdf'],
      ['?name=...', '...'],
      [`?name=${'n'.repeat(255)}`, 'n'.repeat(255)],
      ['', 'of-the-form.txt'],
    ] as const) {
      const body = new FormData()
      body.set('file', new File(['x'], 'of-the-form.txt'))
      const answer = await send(`/files${query}`, { method: 'POST', body })
      expect([answer.status, ((await answer.json()) as FileRecord).name], query).to.deep.equal([201, name])
    }
  })

  it('D43: a name with a folder, a control character or too many characters is refused, and so are no bytes and a wrong lifetime', async () => {
    const before = await (await send('/files')).text()
    for (const [query, body] of [
      ...['a%2Fb', 'a%5Cb', '..', '.', 'a%00', 'a%0Ab', '', 'n'.repeat(256)].map(
        (name) => [`?name=${name}`, 'x'] as const,
      ),
      ...['59', '31536001', '1.5', '-60', ''].map((secs) => [`?expires_in_secs=${secs}`, 'x'] as const),
      ['', ''],
    ] as const) {
      const refused = await send(`/files${query}`, { method: 'POST', body })
      expect(refused.status, query).to.equal(400)
      expect((await refusalOf(refused)).type, query).to.equal('invalid_request_error')
    }
    expect(await (await send('/files')).text()).to.equal(before)
  })

  it('D43: a part of the bytes is what one range names; several ranges, another unit and one of other bytes get the whole', async () => {
    for (const [range, status, text, sent] of [
      ['bytes=0-4', 206, 'hello', 'bytes 0-4/11'],
      ['bytes=6-', 206, 'world', 'bytes 6-10/11'],
      ['bytes=-3', 206, 'rld', 'bytes 8-10/11'],
      ['bytes=6-99', 206, 'world', 'bytes 6-10/11'],
      ['bytes=0-1,4-5', 200, TEXT, null],
      ['lines=0-1', 200, TEXT, null],
      ['nonsense', 200, TEXT, null],
    ] as const) {
      const answer = await content({ range })
      const { status: got, headers } = answer
      expect([got, await answer.text(), headers.get('content-range')], range).to.deep.equal([status, text, sent])
      expect(headers.get('content-length'), range).to.equal(String(text.length))
    }
    expect((await content({ range: 'bytes=11-' })).status).to.equal(416)
    expect((await content({ range: 'bytes=0-4', 'if-range': '"other"' })).status).to.equal(200)
    expect((await content({ range: 'bytes=0-4', 'if-range': `"${file.sha256}"` })).status).to.equal(206)
    expect((await content({ 'if-none-match': `"x", "${file.sha256}"` })).status).to.equal(304)
    const head = await content({}, 'HEAD')
    expect([head.status, head.headers.get('content-length'), await head.text()]).to.deep.equal([200, '11', ''])
  })

  it('D43: the id of another tenant is as unknown as one that nobody has, whatever is asked of it', async () => {
    const headers = { authorization: 'other' }
    for (const [method, rest] of [
      ...[
        ['GET', ''],
        ['DELETE', ''],
        ['GET', '/content'],
        ['HEAD', '/content'],
      ],
    ] as const) {
      const [foreign, unknown] = await Promise.all([
        send(`/files/${file.file_id}${rest}`, { method, headers }),
        send(`/files/${UNKNOWN}${rest}`, { method, headers }),
      ])
      expect([foreign.status, unknown.status], `${method} ${rest}`).to.deep.equal([404, 404])
      const [one, other] = [await foreign.text(), await unknown.text()]
      expect(one.replace(file.file_id, UNKNOWN)).to.equal(other)
    }
    expect(await (await send('/files', { headers })).json()).to.deep.equal({ files: [], next_cursor: null })
    for (const id of ['file_1', '..%2F..', UNKNOWN.toUpperCase()])
      expect((await send(`/files/${id}`)).status).to.equal(404)
    expect(await (await content({})).text()).to.equal(TEXT)
  })
})
