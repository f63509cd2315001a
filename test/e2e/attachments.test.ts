// Tests the files of runs and messages in both forms: services/gateway/starting/attach.ts, services/worker/begin-run.ts and shared/agent/engine/attached-files.ts.

import { expect } from 'chai'
import { runIdOf } from '../../shared/kernel/ids.ts'
import type { ApiType } from '../../shared/platform/api/api-type.ts'
import { useFlows } from '../support/flows.ts'
import type { ModelServer } from '../support/model-server/model-server.ts'
import { useMongo } from '../support/mongo.ts'
import { inBothForms, startStandalone, useProduct } from '../support/product.ts'
import { until } from '../support/until.ts'

const JSON_ONLY = { accept: 'application/json' }
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR42mP4z8CAFTEMLQkAKP8/wc53yE8AAAAASUVORK5CYII=',
  'base64',
)
const PDF = Buffer.from('%PDF-1.7 plan')
/** The header of a picture of 20 megapixels; nothing behind it is ever read. */
const BOMB = Buffer.from(PNG)
BOMB.writeUInt32BE(5_000, 16)
BOMB.writeUInt32BE(4_000, 20)

const DIALECTS = 'ui,openai,ag-ui,a2a'

const isSaid = ({ role }: { role: string }) => role !== 'system'

type Message = ApiType<'SessionMessage'>

const dataOf = (bytes: Buffer, name?: string) => ({ data: bytes.toString('base64'), ...(name && { name }) })

inBothForms('D47: the files of runs and messages', (startProduct, form) => {
  const mongo = form === 'cluster' ? useMongo() : undefined
  const product = useProduct(() =>
    startProduct({ ...mongo?.env, DURABILITY: 'runs', ALLOW_PRIVATE_URLS: 'false', DIALECTS }),
  )

  const start = (body: object) => product.call('POST', '/agent/run', { prompt: 'Look.', ...body }, JSON_ONLY)
  const lastRequest = () => JSON.stringify(product.model.requests.at(-1)?.body)

  it('reach the model and the tools, by id and as data, and the record has their names and sizes', async () => {
    const added = await fetch(`${product.url}/files?name=plan.pdf`, { method: 'POST', body: new Uint8Array(PDF) })
    const { file_id } = (await added.json()) as { file_id: string }
    const paths = ['attachments/plan.pdf', 'attachments/plan-2.pdf', 'attachments/notes.csv']
    product.model.answer(
      paths.slice(1).map((path) => ({ tool: 'Read', input: { path } })),
      'fine',
    )
    const attachments = [{ file_id }, dataOf(PNG, 'plan.pdf'), dataOf(Buffer.from('a,b'), 'notes.csv')]
    const { body } = await start({ attachments })
    expect(body).to.include({ output: 'fine' })
    const sent = lastRequest()
    for (const part of [...paths, PDF.toString('base64'), PNG.toString('base64'), '1\\ta,b'])
      expect(sent).to.include(part)
    expect(sent).to.include('attachments/plan-2.pdf: image/png') // What a file is, its bytes say, and Read shows it.

    const { run_id } = body as { run_id: string }
    const record = (await product.call('GET', `/runs/${run_id}`)).body as { attachments: { name: string }[] }
    expect(record.attachments.map(({ name }) => name)).to.deep.equal(['plan.pdf', 'plan.pdf', 'notes.csv'])
    expect(record.attachments[0]).to.deep.equal({ file_id, name: 'plan.pdf', media_type: 'application/pdf', bytes: 13 })
  })

  it('stay with a session as ids, are sent with each turn, and are named when they are gone', async () => {
    await product.call('POST', '/sessions', { session_id: 'pictures' })
    const say = (body: object) =>
      product.call('POST', '/sessions/pictures/messages', { prompt: 'And?', ...body }, JSON_ONLY)
    product.model.answer('one', 'two', 'three')
    await say({ attachments: [dataOf(PNG, 'red.png')] })
    await say({ attachments: [dataOf(PNG, 'red.png')] })
    expect(lastRequest().split(PNG.toString('base64'))).to.have.length(3)
    const { messages } = (await product.call('GET', '/sessions/pictures/messages')).body as {
      messages: { blocks: { type: string; file_id: string }[] }[]
    }
    const [, file] = messages[0]?.blocks ?? []
    expect(file).to.deep.include({ type: 'file', name: 'red.png', media_type: 'image/png', bytes: PNG.length })
    expect(JSON.stringify(messages)).to.not.include(PNG.toString('base64'))
    // The same picture under the same name is one file.
    expect(messages[2]?.blocks[1]?.file_id).to.equal(file?.file_id)

    await product.call('DELETE', `/files/${file?.file_id}`)
    await say({})
    expect(lastRequest()).to.include('it has expired or was deleted').and.to.not.include(PNG.toString('base64'))
  })

  it('begin a session with its messages', async () => {
    const messages = [
      { role: 'user', content: 'Look.', attachments: [dataOf(PNG, 'red.png')] },
      { role: 'assistant', content: 'Red.' },
    ]
    expect((await product.call('POST', '/sessions', { session_id: 'seeded', messages })).status).to.equal(201)
    product.model.answer('fine')
    await product.call('POST', '/sessions/seeded/messages', { prompt: 'Sure?' }, JSON_ONLY)
    expect(lastRequest()).to.include(PNG.toString('base64'))
  })

  it('D23.4: what a session lists begins another one, whatever it holds: steered texts, own tools, files, typed answers and failed runs', async () => {
    const create = async (body?: object) =>
      ((await product.call('POST', '/sessions', body)).body as { session_id: string }).session_id
    const messagesOf = async (session: string) =>
      ((await product.call('GET', `/sessions/${session}/messages`)).body as { messages: Message[] }).messages
    const id = await create()
    const said = async (message: object, ...answers: Parameters<typeof product.model.answer>) => {
      product.model.answer(...answers)
      return product.stream(`/sessions/${id}/messages`, message)
    }
    const attachments = [{ data: Buffer.from('a note').toString('base64'), name: 'note.txt' }]
    const calls = [
      { tool: 'own', input: {}, id: 'c1' },
      { tool: 'Write', input: { path: 'a.txt', content: 'a' }, id: 'w1' },
    ]
    const run = await said({ prompt: 'go', attachments, client_tools: [{ name: 'own' }] }, calls, [
      { tool: 'Deliver', input: { paths: ['a.txt'] }, id: 'd1' },
    ])
    product.model.answer('delivered')
    const { data: asked } = await run.until('permission_request')
    await product.call('POST', `/runs/${run.runId}/steer`, { prompt: 'be quick' })
    await product.call('POST', `/sessions/${id}/permissions/${asked['id']}`, { allow: true })
    await product.call('POST', `/runs/${run.runId}/tool-calls/c1`, { output: 'own output' })
    await run.all()
    const typed = { prompt: 'how many?', response_schema: { type: 'integer' } }
    await (await said(typed, 'many', '7')).all()
    await (await said({ prompt: 'fail' }, { status: 400 })).all()
    const listed = await messagesOf(id)
    const roles = listed.map(({ role, blocks }) => `${role} ${blocks.map(({ type }) => type).join()}`)
    expect(roles).to.deep.equal([
      ...['user text,file', 'assistant tool_use,tool_use', 'tool tool_result,tool_result', 'user text'],
      ...['assistant tool_use', 'tool tool_result', 'assistant text'],
      ...['user text', 'assistant text', 'user text', 'assistant text', 'user text'],
    ])
    const copy = await create({ messages: listed })
    const bare = (all: Message[]) =>
      all.map(({ role, blocks }) => ({ role, blocks: blocks.map((block) => ({ ...block, artifacts: undefined })) }))
    expect(bare(await messagesOf(copy))).to.deep.equal(bare(listed))
    const read: unknown[] = []
    for (const each of [id, copy]) {
      product.model.answer('yes')
      await (await product.stream(`/sessions/${each}/messages`, { prompt: 'go on' })).all()
      const { messages = [] } = (product.model.requests.at(-1)?.body ?? {}) as { messages?: { role: string }[] }
      read.push(messages.filter(isSaid))
    }
    expect(read[1]).to.deep.equal(read[0])
  })

  it('that no model may get are 400 or 404 at their place, before a model is called', async () => {
    const asked = product.model.requests.length
    const zip = Buffer.from('504b0506000000000000000000000000000000000000', 'hex')
    const unknown = `file_${'0'.repeat(32)}`
    const cases: [attachment: object, status: number, param: string, code?: string][] = [
      [dataOf(zip, 'picture.png'), 400, '/attachments/0', 'unsupported_attachment'],
      [dataOf(BOMB, 'bomb.png'), 400, '/attachments/0', 'unsupported_attachment'],
      [{ url: 'http://127.0.0.1:1/a.png' }, 400, '/attachments/0/url', 'egress_refused'],
      [{ url: 'http://169.254.169.254/latest' }, 400, '/attachments/0/url', 'egress_refused'],
      [{ url: 'file:///etc/passwd' }, 400, '/attachments/0/url', 'egress_refused'],
      [{ data: 'no base64!' }, 400, '/attachments/0/data'],
      [{ ...dataOf(PNG), url: 'https://example.com' }, 400, '/attachments/0'],
      [{}, 400, '/attachments/0'],
      [dataOf(PNG, '../a.png'), 400, '/attachments/0/name'],
      [dataOf(PNG, 'a\u0000.png'), 400, '/attachments/0/name'],
      [dataOf(PNG, 'n'.repeat(300)), 400, '/attachments/0/name'],
    ]
    for (const [attachment, status, param, code] of cases) {
      const reply = await start({ attachments: [attachment] })
      const { error } = reply.body as { error: { param?: string; code?: string } }
      expect([reply.status, error.param, error.code], JSON.stringify(attachment)).to.deep.equal([status, param, code])
    }
    const seed = [
      { role: 'user', content: 'x', attachments: [{ file_id: unknown }] },
      { role: 'assistant', content: 'y' },
    ]
    for (const reply of [
      await start({ attachments: [{ file_id: unknown }] }),
      await product.call('POST', '/sessions', { messages: seed }),
    ])
      expect(reply.status).to.equal(404)
    const many = Array.from({ length: 21 }, () => dataOf(PNG))
    expect(await start({ attachments: many })).to.nested.include({ status: 400, 'body.error.param': '/attachments' })
    expect(product.model.requests).to.have.length(asked)
  })
})

describe('D47: files in flows and plans', () => {
  const bench = useFlows(startStandalone, 'standalone')
  const { call } = bench
  const unknown = `file_${'0'.repeat(32)}`
  const lastAt = (model: ModelServer) => JSON.stringify(model.requests.at(-1)?.body)
  let fileId = ''
  before(async () => {
    const added = await fetch(`${bench.product.url}/files?name=plan.pdf`, { method: 'POST', body: new Uint8Array(PDF) })
    ;({ file_id: fileId } = (await added.json()) as { file_id: string })
  })

  it('D47.6, D50.3c: reach the agents of a flow by the properties of its input, and what it writes is listed by its run', async () => {
    const file = { type: 'string', contentMediaType: 'application/pdf' }
    const object = (properties: object) => ({ type: 'object', properties, required: Object.keys(properties) })
    const name = await bench.publish({
      tools: ['Write'],
      input_schema: object({ documents: { type: 'array', items: file } }),
      output_schema: object({ title: { type: 'string' } }),
    })
    const run = (...documents: string[]) => bench.run(name, { input: { documents } })
    bench.main.answer([{ tool: 'Write', input: { path: 'title.txt', content: 'Plan' }, id: 'w' }], '{"title":"Plan"}')
    const read = await run(fileId)
    expect(read.body).to.deep.include({ output: { title: 'Plan' } })
    expect(lastAt(bench.main)).to.include(PDF.toString('base64'))
    const run_id = runIdOf(String(read.headers.get('x-trace-id')))
    const { files } = (await call('GET', `/runs/${run_id}/files`)).body as { files: Record<string, unknown>[] }
    const changes = files.map(({ path, changed_by: by }) => ({ path, by }))
    expect(changes).to.deep.equal(['attachments/plan.pdf', 'title.txt'].map((path) => ({ path, by: { run_id } })))
    expect((await call('GET', `/runs/${run_id}/files/content?path=title.txt`)).text).to.equal('Plan')
    expect((await run(unknown)).status).to.equal(404)
    expect(await run(fileId, 'a.pdf')).to.nested.include({ status: 400, 'body.error.param': '/input/documents/1' })
  })

  it('D47.6: reach the steps of a plan, which is refused with a file of nobody, also on a schedule', async () => {
    const plan = (id: string) => ({ steps: [{ id: 'read', prompt: 'Read it.', attachments: [{ file_id: id }] }] })
    expect((await call('POST', '/plans/submit', plan(unknown))).status).to.equal(404)
    const schedule = { every_secs: 3600, plan: plan(unknown) }
    expect((await call('PUT', '/plans/schedules/x', schedule)).status).to.equal(404)
    bench.product.model.answer('read')
    const submitted = await call('POST', '/plans/submit', plan(fileId))
    const { id } = submitted.body as { id: string }
    const statusOf = async () => ((await call('GET', `/plans/${id}`)).body as { status: string }).status
    await until(async () => !['queued', 'running'].includes(await statusOf()), { what: 'the plan to end' })
    expect(await statusOf()).to.equal('done')
    expect(lastAt(bench.product.model)).to.include(PDF.toString('base64'))
  })
})
