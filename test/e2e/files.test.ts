// Tests services/gateway/routes/files.ts and the files in both forms.

import { readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { useMongo } from '../support/mongo.ts'
import { inBothForms, useProduct } from '../support/product.ts'

type FileAnswer = { file_id: string; name: string; media_type: string; bytes: number; sha256: string }

inBothForms('D43: the files of a tenant', (startProduct, form) => {
  const mongo = form === 'cluster' ? useMongo() : undefined
  const product = useProduct(() => startProduct({ ...mongo?.env }))

  const send = (path: string, init?: RequestInit) => fetch(`${product.url}${path}`, init)
  const statusOf = async (answer: Promise<Response>) => {
    const { status, body } = await answer
    await body?.cancel()
    return status
  }
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

  it('D50.3a, D50.3b: the folder of a session is listed with what has changed each file, and sent; nothing outside of it is', async () => {
    await product.call('POST', '/sessions', { session_id: 'folder' })
    const write = (path: string) => ({ tool: 'Write', id: `call_${path}`, input: { path, content: `${path}!` } })
    const runs: string[] = []
    for (const paths of [['a.txt', 'docs/b.txt'], ['c.txt']]) {
      product.model.answer(paths.map(write), 'done')
      const stream = await product.stream('/sessions/folder/messages', { prompt: 'write' })
      for (const _ of paths) {
        const { data } = await stream.until('permission_request')
        await product.call('POST', `/sessions/folder/permissions/${data['id']}`, { allow: true })
      }
      await stream.all()
      runs.push(stream.runId)
    }
    type Listed = { files: { path: string; changed_by: object | null; sha256: string }[]; next_cursor: string | null }
    const list = async (path: string) => (await product.call('GET', path)).body as Listed
    const changes = ({ files }: Listed) => files.map(({ path, changed_by: by }) => [path, by])
    const [a, b, c] = ['a.txt', 'docs/b.txt', 'c.txt'].map((path, i) => [
      path,
      { run_id: runs[i === 2 ? 1 : 0], tool_use_id: `call_${path}` },
    ])
    expect(changes(await list('/sessions/folder/files'))).to.deep.equal([a, c, b])
    expect(changes(await list(`/runs/${runs[1]}/files`))).to.deep.equal([c])
    const first = await list('/sessions/folder/files?limit=2')
    expect(changes(await list(`/sessions/folder/files?limit=2&cursor=${first.next_cursor}`))).to.deep.equal([b])
    const content = (path: string) => send(`/sessions/folder/files/content?path=${path}`)
    const sent = await content('docs/b.txt')
    expect([
      await sent.text(),
      sent.headers.get('content-disposition'),
      sent.headers.get('x-content-type-options'),
    ]).to.deep.equal([...['docs/b.txt!', 'attachment; filename=b.txt', 'nosniff']])
    const [tenant = ''] = await readdir(join(product.dataDir, 'workspaces'))
    const [folder = ''] = (await readdir(join(product.dataDir, 'workspaces', tenant))).filter((name) =>
      name.startsWith('folder.'),
    )
    const root = join(product.dataDir, 'workspaces', tenant, folder)
    await symlink('/etc/passwd', join(root, 'link'))
    await writeFile(join(root, 'large'), Buffer.alloc(300_000, 'x'))
    for (const path of ['../x', '%2e%2e%2fx', '/etc/passwd', 'link', 'a.txt%00', 'docs', '', 'docs/../../x'])
      expect(await statusOf(content(path)), path).to.equal(400)
    expect(await statusOf(content('gone'))).to.equal(404)
    const large = await content('large')
    expect([large.headers.get('content-length'), (await large.text()).length]).to.deep.equal(['300000', 300_000])
    expect((await list('/sessions/folder/files')).files.map(({ path }) => path)).to.not.include('link')
    expect(await statusOf(send('/sessions/other/files'))).to.equal(404)
    expect(await statusOf(send(`/runs/run_${'0'.repeat(31)}1/files`))).to.equal(404)
  })

  it('D23.6: a fork goes on from a message by itself, and has the folder where nothing came behind it', async () => {
    await product.call('POST', '/sessions', { session_id: 'trunk' })
    const say = async (id: string, prompt: string, answer: string) => {
      product.model.answer(answer)
      const stream = await product.stream(`/sessions/${id}/messages`, { prompt })
      await stream.all()
      return stream.runId
    }
    const first = await say('trunk', 'one', 'uno')
    const second = await say('trunk', 'two', 'dos')
    product.model.answer([{ tool: 'Write', input: { path: 'a.txt', content: 'a' } }], 'tres')
    const last = await product.stream('/sessions/trunk/messages', { prompt: 'three' })
    const { data } = await last.until('permission_request')
    await product.call('POST', `/sessions/trunk/permissions/${data['id']}`, { allow: true })
    await last.all()
    const fork = (at: string, session_id?: string) =>
      product.call('POST', '/sessions/trunk/fork', { at, ...(session_id && { session_id }) })
    const early = await fork(first, 'early')
    expect(early.status).to.equal(201)
    const { from } = early.body as { from: { session_id: string; message_id: string } }
    expect(from.session_id).to.equal('trunk')
    expect((await product.call('GET', '/sessions/early')).body).to.deep.include({
      from,
      title: 'one',
      message_count: 2,
    })
    await say('early', 'and?', 'y')
    const asked = product.model.requests.at(-1)?.body['messages'] as { content: string }[]
    expect(asked.map(({ content }) => content).slice(-3)).to.deep.equal(['one', 'uno', 'and?'])
    const textsOf = async (id: string) => {
      const { messages } = (await product.call('GET', `/sessions/${id}/messages`)).body as {
        messages: { id: string; role: string; blocks: { text?: string }[] }[]
      }
      return messages
    }
    expect((await textsOf('early'))[1]?.id).to.equal(from.message_id)
    expect((await textsOf('trunk')).length, 'it has not changed').to.equal(8)
    const late = (await fork(last.runId)).body as { session_id: string }
    const files = async (id: string) =>
      ((await product.call('GET', `/sessions/${id}/files`)).body as { files: { path: string }[] }).files.map(
        ({ path }) => path,
      )
    expect([await files('early'), await files(late.session_id)]).to.deep.equal([[], ['a.txt']])
    expect((await fork(second, 'early')).status).to.equal(409)
    const calls = (await textsOf('trunk')).at(-3)
    for (const at of ['msg_unknown', calls?.id ?? '']) expect((await fork(at)).status, at).to.equal(400)
    expect((await product.call('POST', '/sessions/nowhere/fork', { at: first })).status).to.equal(404)
  })
})
