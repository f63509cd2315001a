import { join } from 'node:path'
import { expect } from 'chai'
import { createReceiveUpload, createUploadLine } from '../../../services/gateway/bodies/upload.ts'
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
        enter: (tenant, signal) => createUploadLine().enter({ tenant, bytes: 0 }, signal),
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

  describe('D43.5a: by tus', () => {
    const TUS = { 'tus-resumable': '1.0.0' }
    const OCTETS = { ...TUS, 'content-type': 'application/offset+octet-stream' }
    const create = (headers: Record<string, string>, query = '') =>
      send(`/files${query}`, { method: 'POST', headers: { ...TUS, ...headers } })
    const named = (name: string) => ({ 'upload-metadata': `filename ${Buffer.from(name).toString('base64')}` })
    const statusOf = async (answer: Promise<Response>) => {
      const { status, headers } = await answer
      return `${status} ${headers.get('tus-resumable')}`
    }

    it('an upload has the address of its file, and its refusals are those of this API', async () => {
      const created = await create({ 'upload-length': '11', ...named('a.txt') })
      const path = (created.headers.get('location') ?? '').replace('/v1', '')
      expect([created.status, /^\/files\/file_[0-9a-f]{32}$/.test(path)]).to.deep.equal([201, true])
      expect(Date.parse(created.headers.get('upload-expires') ?? '')).to.be.greaterThan(Date.now())
      const patch = (body: string, headers: Record<string, string>) => send(path, { method: 'PATCH', body, headers })
      const head = () => send(path, { method: 'HEAD', headers: TUS })
      const refused: [number, string, Promise<Response>][] = [
        [412, 'invalid_request_error', patch('x', { 'content-type': OCTETS['content-type'], 'upload-offset': '0' })],
        [400, 'invalid_request_error', patch('x', { ...OCTETS })],
        [400, 'invalid_request_error', patch('x', { ...OCTETS, 'upload-offset': '-1' })],
        [400, 'invalid_request_error', patch('x', { ...TUS, 'upload-offset': '0', 'content-type': 'text/plain' })],
        [409, 'conflict_error', patch('x', { ...OCTETS, 'upload-offset': '5' })],
        [413, 'invalid_request_error', patch('hello worlds', { ...OCTETS, 'upload-offset': '0' })],
      ]
      for (const [status, type, answer] of refused) {
        const { headers, ...sent } = await answer.then(async (each) => ({
          status: each.status,
          headers: each.headers,
          error: await refusalOf(each),
        }))
        expect([sent.status, sent.error.type], sent.error.message).to.deep.equal([status, type])
        expect([headers.get('tus-resumable'), headers.get('tus-version')]).to.deep.equal(['1.0.0', '1.0.0'])
      }
      expect(await statusOf(patch('hello ', { ...OCTETS, 'upload-offset': '0' }))).to.equal('204 1.0.0')
      expect((await head()).headers.get('upload-offset')).to.equal('6')
      expect((await send(path)).status).to.equal(404)
      expect(await statusOf(patch('world', { ...OCTETS, 'upload-offset': '6' }))).to.equal('204 1.0.0')
      expect([(await head()).headers.get('upload-offset'), (await head()).headers.get('upload-length')]).to.deep.equal([
        '11',
        '11',
      ])
      expect(await (await send(`${path}/content`)).text()).to.equal(TEXT)
      expect(await statusOf(send(path, { method: 'DELETE', headers: TUS }))).to.equal('204 1.0.0')
      expect((await send(path)).status).to.equal(404)
    })

    it('an upload of no bytes, of too many, of an unknown length or with a wrong name or lifetime does not begin', async () => {
      const max = 320 * 1024 * 1024
      for (const [status, headers, query] of [
        [400, { 'upload-length': '0' }, ''],
        [413, { 'upload-length': String(max + 1) }, ''],
        [400, { 'upload-length': '1e3' }, ''],
        [400, { 'upload-defer-length': '1' }, ''],
        [400, {}, ''],
        [400, { 'upload-length': '1', ...named('../x') }, ''],
        [400, { 'upload-length': '1', 'upload-metadata': 'filename %%%' }, ''],
        [400, { 'upload-length': '1' }, '?expires_in_secs=1'],
        [412, { 'upload-length': '1', 'tus-resumable': '0.2.2' }, ''],
      ] as const) {
        const answer = await create(headers, query)
        expect([answer.status, (await refusalOf(answer)).type], JSON.stringify(headers)).to.deep.equal([
          status,
          'invalid_request_error',
        ])
      }
      expect((await create({ 'upload-length': String(max) })).status).to.equal(201)
      const { headers } = await send('/files', { method: 'OPTIONS' })
      expect(headers.get('tus-max-size')).to.equal(String(max))
    })

    it('the upload of another tenant is as unknown as one that nobody has begun', async () => {
      const path = ((await create({ 'upload-length': '11' })).headers.get('location') ?? '').replace('/v1', '')
      const by = { ...OCTETS, authorization: 'other', 'upload-offset': '0' }
      for (const [method, body] of [['HEAD'], ['PATCH', TEXT], ['DELETE']] as const)
        for (const each of [path, `/files/${UNKNOWN}`])
          expect((await send(each, { method, headers: by, ...(body && { body }) })).status, method).to.equal(404)
      expect((await send(path, { method: 'HEAD', headers: TUS })).headers.get('upload-offset')).to.equal('0')
    })
  })
})
