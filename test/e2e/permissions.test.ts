import { access, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import type { DecidedPage } from '../../shared/cluster/permissions/decided.ts'
import type { EventStream } from '../support/event-stream.ts'
import type { Answer } from '../support/model-server/model-server.ts'
import { useMongo } from '../support/mongo.ts'
import { inBothForms, type Product } from '../support/product.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'

const ASKER = new URL('../support/mcp-server/asker.ts', import.meta.url).pathname
const WRITE = { tool: 'Write', input: { path: 'notes/a.txt', content: 'hello' } }

inBothForms('permissions', (startProduct, form) => {
  const mongo = form === 'cluster' ? useMongo() : undefined
  const dir = useTempFolder()
  let product: Product
  before(async () => {
    const file = join(dir.path, 'mcp.json')
    await writeFile(file, JSON.stringify({ mcpServers: { asker: { command: process.execPath, args: [ASKER] } } }))
    product = await startProduct({
      MCP_CONFIG: file,
      TOOL_PERMISSIONS: '{"TodoWrite":"deny","mcp__asker__*":"allow"}',
      ...mongo?.env,
    })
  })
  after(() => product.close())

  const reply = (scope: string, id: unknown, body: unknown) =>
    product.call('POST', `/sessions/${scope}/permissions/${id}`, body)
  const asked = () => askedAfter([WRITE], 'done')
  /** Starts a run with these answers of the model, and reads up to its permission request. */
  async function askedAfter(...answers: Answer[]): Promise<{ stream: EventStream; id: string }> {
    product.model.answer(...answers)
    const stream = await product.run({ prompt: 'write it' })
    const { data } = await stream.until('permission_request')
    return { stream, id: String(data['id']) }
  }
  const lastToolMessage = () => {
    const messages = product.model.requests.at(-1)?.body['messages'] as { content: string }[] | undefined
    return messages?.at(-1)?.content
  }

  it('api.md Events 3: a permission request describes the call; when it is allowed the tool runs and the model reads the result', async () => {
    const { stream, id } = await asked()
    const request = stream.frames.at(-1)?.data
    expect(id).to.match(/^perm_[0-9a-f]{32}$/)
    expect(request).to.deep.include({ tool_name: 'Write', input: WRITE.input })
    expect(request?.['message']).to.be.a('string').that.includes('notes/a.txt')
    const diff = '--- /dev/null\n+++ notes/a.txt\n@@ -0,0 +1,1 @@\n+hello\n\\ No newline at end of file\n'
    const preview = { kind: 'diff', path: 'notes/a.txt', diff }
    expect(request, 'D24.4').to.deep.include({ preview })
    const { permissions } = (await product.call('GET', '/permissions')).body as {
      permissions: Record<string, unknown>[]
    }
    expect(permissions.find((each) => each['id'] === id)).to.deep.include({ preview })
    const use = stream.frames.find(({ event }) => event === 'tool_use')?.data
    expect(request).to.include({ tool_use_id: use?.['id'] })
    expect((await product.call('GET', `/runs/${stream.runId}`)).body).to.include({ status: 'waiting' })
    const answer = await reply(stream.runId, id, { allow: true })
    expect(answer.status).to.equal(200)
    expect(answer.body).to.deep.equal({ status: 'ok' })
    expect((await stream.until('tool_result')).data).to.include({ is_error: false })
    await stream.all()
    const file = join(product.dataDir, 'workspaces', 't_default', stream.runId, 'notes/a.txt')
    expect(await readFile(file, 'utf8')).to.equal('hello')
  })

  it('D40.4: a form that an MCP server asks a person for is shown, answered as it wants, recorded, and the server reads the answer', async () => {
    const { stream, id } = await askedAfter([{ tool: 'mcp__asker__book', input: {} }], 'done')
    const request = stream.frames.at(-1)?.data
    expect(request).to.deep.include({ message: 'The MCP server asker asks: How many?', input: { window: true } })
    expect(request?.['preview']).to.nested.include({ kind: 'form', 'schema.required[0]': 'seats' })
    for (const wrong of [{ allow: true }, { allow: true, input: { seats: 0 } }])
      expect((await reply(stream.runId, id, wrong)).status).to.equal(400)
    const input = { seats: 2, window: false }
    expect((await reply(stream.runId, id, { allow: true, input })).status).to.equal(200)
    const output = JSON.stringify({ action: 'accept', content: input })
    expect((await stream.until('tool_result')).data).to.include({ output, is_error: false })
    await stream.all()
  })

  it('api.md Permission request: a denied tool does not run, and the model reads the reason', async () => {
    const { stream, id } = await asked()
    await reply(stream.runId, id, { allow: false, reason: 'not on a Friday' })
    expect((await stream.until('tool_result')).data).to.include({ is_error: true })
    expect((await stream.all()).at(-1)?.event).to.equal('done')
    expect(lastToolMessage()).to.include('not on a Friday')
    const runs = await readdir(join(product.dataDir, 'workspaces', 't_default'))
    expect(runs).not.to.include(stream.runId)
  })

  it('every viewer of a run learns how a permission request was resolved, before the result', async () => {
    const { stream, id } = await asked()
    const viewer = await product.stream(`/runs/${stream.runId}/events`)
    await viewer.until('permission_request')
    await reply(stream.runId, id, { allow: false, reason: 'not on a Friday' })
    const { tool_use_id, tool_name } = stream.frames.at(-1)?.data ?? {}
    for (const each of [stream, viewer]) {
      expect((await each.next())?.data).to.deep.equal({
        id,
        tool_use_id,
        tool_name,
        allow: false,
        how: 'reply',
        reason: 'not on a Friday',
        by: 'anonymous',
      })
      expect((await each.next())?.event).to.equal('tool_result')
      expect(await each.all()).to.deep.equal(stream.frames)
    }
  })

  it('D24.1: a reply may change the input: the tool runs with that, and the model and every reader learn of it', async () => {
    const { stream, id } = await asked()
    for (const [wrong, param] of [
      [{ allow: true, input: { path: 5, content: 'b' } }, '/input'],
      [{ allow: true, input: { path: 'x' } }, '/input'],
      [{ allow: true, input: [] }, '/input'],
      [{ allow: false, input: WRITE.input }, '/input'],
    ] as const) {
      const refused = await reply(stream.runId, id, wrong)
      expect(refused.status, refused.text).to.equal(400)
      expect(refused.body).to.nested.include({ 'error.param': param })
    }
    const input = { path: 'notes/b.txt', content: 'changed' }
    expect((await reply(stream.runId, id, { allow: true, input })).status).to.equal(200)
    expect((await stream.until('permission_resolved')).data).to.deep.include({ allow: true, by: 'anonymous', input })
    const { data: result } = await stream.until('tool_result')
    await stream.all()
    const folder = join(product.dataDir, 'workspaces', 't_default', stream.runId, 'notes')
    expect(await readdir(folder)).to.deep.equal(['b.txt'])
    expect(await readFile(join(folder, 'b.txt'), 'utf8')).to.equal('changed')
    expect(result['output']).to.include(JSON.stringify(input))
    expect(lastToolMessage()).to.equal(result['output'])
  })

  it('D24.3: decided requests are listed, newest first, with who decided them when, and what ran', async () => {
    type Decided = DecidedPage & { status: number }
    const decided = async (query = '') => {
      const { status, body } = await product.call('GET', `/permissions?state=decided${query}`)
      return { status, ...(body as object) } as Decided
    }
    const recorded = (id: string) =>
      until(async () => (await decided()).permissions.find((each) => each.id === id), { what: 'the record' })
    const first = await asked()
    const input = { path: 'notes/b.txt', content: 'changed' }
    await reply(first.stream.runId, first.id, { allow: true, input, remember: 'session' })
    await first.stream.all()
    const { created_at, decided_at, message, ...rest } = await recorded(first.id)
    const { runId } = first.stream
    const request = first.stream.frames.find(({ event }) => event === 'permission_request')?.data
    expect(rest).to.deep.equal({
      ...{ id: first.id, session_id: runId, run_id: runId, tool_name: 'Write', tool_use_id: request?.['tool_use_id'] },
      ...{ allow: true, how: 'reply', by: 'anonymous', edited: true, remembered: true, reason: '', input },
    })
    expect(message).to.equal(request?.['message'])
    expect(Date.parse(decided_at)).to.be.at.least(Date.parse(created_at)) // Both may be in one millisecond.

    const second = await askedAfter([WRITE])
    await product.call('DELETE', `/runs/${second.stream.runId}`)
    await second.stream.all()
    expect(await recorded(second.id)).to.include({ allow: false, how: 'cancelled', edited: false })
    const { permissions } = await decided()
    expect(permissions.slice(0, 2).map(({ id }) => id)).to.deep.equal([second.id, first.id])
    expect(permissions.map((each) => each.decided_at)).to.deep.equal(
      permissions
        .map((each) => each.decided_at)
        .toSorted()
        .reverse(),
    )
    const page = await decided('&limit=1')
    expect(page.permissions).to.deep.equal(permissions.slice(0, 1))
    const next = await decided(`&limit=1&cursor=${page.next_cursor}`)
    expect(next.permissions).to.deep.equal(permissions.slice(1, 2))
    expect((await decided(`&since=${permissions[0]?.decided_at}`)).permissions).to.deep.equal(permissions.slice(0, 1))
    for (const query of ['&since=yesterday', '&cursor=x']) expect((await decided(query)).status).to.equal(400)
    expect((await product.call('GET', '/permissions?since=2026-11-22')).status).to.equal(400)
  })

  it('api.md PermissionReply: a session’s requests are answered under the session’s id', async () => {
    await product.call('POST', '/sessions', { session_id: 'asking' })
    product.model.answer([WRITE], 'done')
    const stream = await product.stream('/sessions/asking/messages', { prompt: 'write' })
    const { data } = await stream.until('permission_request')
    expect((await reply(stream.runId, data['id'], { allow: true })).status).to.equal(404)
    expect((await reply('asking', data['id'], { allow: true })).status).to.equal(200)
    await stream.all()
    const tenantDir = join(product.dataDir, 'workspaces', 't_default')
    const folder = (await readdir(tenantDir)).find((name) => name.startsWith('asking.'))
    await access(join(tenantDir, folder ?? '', 'notes/a.txt'))
  })
})

inBothForms('a permission request without a reply', (startProduct) => {
  it('api.md Limits: is denied after the timeout, the run continues, and a later reply is 404', async () => {
    const product = await startProduct({ PERMISSION_TIMEOUT_SECS: '1' })
    try {
      product.model.answer([WRITE], 'I may not')
      const stream = await product.run({ prompt: 'write' })
      const { data } = await stream.until('permission_request')
      const { data: resolved } = await stream.until('permission_resolved')
      expect(resolved).to.include({ id: data['id'], allow: false, how: 'timeout' })
      expect(resolved['reason']).to.equal('nobody answered within 1 seconds')
      expect((await stream.until('tool_result')).data).to.include({ is_error: true })
      const late = await product.call('POST', `/sessions/${stream.runId}/permissions/${data['id']}`, { allow: true })
      expect(late.status).to.equal(404)
      expect((await stream.all()).at(-1)?.event).to.equal('done')
    } finally {
      await product.close()
    }
  })
})
