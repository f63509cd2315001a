// Tests services/gateway/routes/files.ts and the files in both forms.

import { expect } from 'chai'
import { useMongo } from '../support/mongo.ts'
import { inBothForms, type Product } from '../support/product.ts'

type FileAnswer = { file_id: string; name: string; media_type: string; bytes: number; sha256: string }

inBothForms('D43: the files of a tenant', (startProduct, form) => {
  const mongo = form === 'cluster' ? useMongo() : undefined
  let product: Product
  before(async () => {
    product = await startProduct({ ...mongo?.env })
  })
  after(() => product.close())

  const send = (path: string, init?: RequestInit) => fetch(`${product.url}${path}`, init)
  async function add(body: FormData | Uint8Array<ArrayBuffer>, query = ''): Promise<FileAnswer> {
    const answer = await send(`/files${query}`, { method: 'POST', body })
    expect(answer.status, await answer.clone().text()).to.equal(201)
    return (await answer.json()) as FileAnswer
  }

  it('come as a form or as their bytes, and are read whole, in parts, or not again', async () => {
    const sent = new FormData()
    sent.set('file', new File(['%PDF-1.7 hello'], 'plän.pdf'))
    const pdf = await add(sent)
    expect(pdf).to.include({ name: 'plän.pdf', media_type: 'application/pdf', bytes: 14 })
    const raw = await add(new Uint8Array([1, 2, 3]), '?name=raw.bin&expires_in_secs=3600')
    expect(raw).to.include({ name: 'raw.bin', media_type: 'application/octet-stream', bytes: 3 })
    expect((await product.call('GET', '/files')).body).to.deep.equal({ files: [raw, pdf], next_cursor: null })
    expect((await product.call('GET', `/files/${pdf.file_id}`)).body).to.deep.equal(pdf)

    const path = `/files/${pdf.file_id}/content`
    const whole = await send(path)
    expect(await whole.text()).to.equal('%PDF-1.7 hello')
    expect(whole.headers.get('content-disposition')).to.match(
      /^attachment; filename=.*filename\*=UTF-8''pl%C3%A4n\.pdf$/,
    )
    expect(whole.headers.get('x-content-type-options')).to.equal('nosniff')
    const etag = String(whole.headers.get('etag'))
    expect((await send(path, { headers: { 'if-none-match': etag } })).status).to.equal(304)
    const part = await send(path, { headers: { range: 'bytes=9-' } })
    expect([part.status, part.headers.get('content-range'), await part.text()]).to.deep.equal([
      206,
      'bytes 9-13/14',
      'hello',
    ])
    const stale = await send(path, { headers: { range: 'bytes=9-', 'if-range': '"other"' } })
    expect([stale.status, (await stale.text()).length]).to.deep.equal([200, 14])
    expect((await send(path, { headers: { range: 'bytes=14-' } })).status).to.equal(416)

    await product.call('DELETE', `/files/${pdf.file_id}`)
    for (const gone of [path, `/files/${pdf.file_id}`]) expect((await send(gone)).status, gone).to.equal(404)
  })

  it('that are empty, without a usable name, or unknown are refused, and nothing is kept', async () => {
    const before = (await product.call('GET', '/files')).text
    const sent = new FormData()
    sent.set('file', new File(['x'], '../../etc/passwd'))
    expect((await send('/files', { method: 'POST', body: sent })).status, 'a folder in the name').to.be.oneOf([
      201, 400,
    ])
    for (const [path, body] of [
      ['/files', ''],
      ['/files?name=a%2Fb', 'x'],
      ['/files?name=..', 'x'],
      ['/files?expires_in_secs=1', 'x'],
    ] as const)
      expect((await send(path, { method: 'POST', body })).status, path).to.equal(400)
    const { files } = (await product.call('GET', '/files')).body as { files: FileAnswer[] }
    for (const { name } of files) expect(name).to.not.include('/')
    for (const { file_id, name } of files) if (name === 'passwd') await product.call('DELETE', `/files/${file_id}`)
    expect((await product.call('GET', '/files')).text).to.equal(before)
    expect((await send(`/files/file_${'0'.repeat(32)}/content`)).status).to.equal(404)
  })

  it('D50: a run delivers files of its workspace, which the stream and the record name, and which outlive it', async () => {
    const deliver = { tool: 'Deliver', input: { paths: ['plan.md'], title: 'The plan' } }
    product.model.answer(
      [{ tool: 'Write', input: { path: 'plan.md', content: '# Plan' } }],
      [deliver, { ...deliver, input: { paths: ['../plan.md'] } }],
      'done',
    )
    const stream = await product.run({ prompt: 'plan' })
    const { data } = await stream.until('permission_request')
    await product.call('POST', `/sessions/${stream.runId}/permissions/${data['id']}`, { allow: true })
    const frames = await stream.all()
    const told = frames.filter(({ event }) => event === 'artifact').map((frame) => frame.data)
    expect(told).to.have.length(1)
    const { tool_use_id: _call, ...file } = told[0] ?? {}
    expect(file).to.include({ name: 'plan.md', media_type: 'text/markdown', bytes: 6, title: 'The plan' })
    expect((await product.call('GET', `/runs/${stream.runId}`)).body).to.deep.include({ artifacts: [file] })
    expect(await (await send(`/files/${String(file['file_id'])}/content`)).text()).to.equal('# Plan')
  })
})
