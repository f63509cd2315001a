import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { useMongo } from '../support/mongo.ts'
import { inBothForms, useProduct } from '../support/product.ts'
import { TenantEvents } from '../support/tenant-events.ts'

const WRITE = { tool: 'Write', input: { path: 'notes/a.txt', content: 'a text that no event repeats' } }
const FLOW = { input_schema: { type: 'object' }, output_schema: { type: 'object' } }

inBothForms("the tenant's events", (startProduct, form) => {
  const mongo = form === 'cluster' ? useMongo() : undefined
  const readers: TenantEvents[] = []

  const product = useProduct(() =>
    startProduct({
      ...mongo?.env,
      MASTER_KEY: randomBytes(32).toString('base64'),
      ALLOW_PRIVATE_URLS: 'true',
    }),
  )
  before(async () => {
    product.model.otherwise(() => 'fine')
  })
  afterEach(() => {
    for (const reader of readers.splice(0)) reader.leave()
  })

  const read = async (query = '', headers: Record<string, string> = {}) => {
    const reader = await TenantEvents.open(product.url, query, headers)
    readers.push(reader)
    return reader
  }

  it('D16a: a run that asks for permission is started, waits, goes on and ends, in ids and states alone', async () => {
    const events = await read()
    product.model.answer([WRITE], 'done')
    const stream = await product.run({ prompt: 'a prompt that no event repeats' })
    const { data: ask } = await stream.until('permission_request')
    const run_id = stream.runId
    const requested = await events.until('permission.requested', { request_id: ask['id'] })
    expect(requested.data).to.include({ run_id, session_id: run_id, tool_name: 'Write', expires_at: ask['expires_at'] })
    await product.call('POST', `/sessions/${run_id}/permissions/${ask['id']}`, { allow: true })
    await stream.all()
    const resolved = await events.until('permission.resolved', { request_id: ask['id'] })
    expect(resolved.data).to.include({ run_id, allow: true, how: 'reply', by: 'anonymous', edited: false })
    const ended = await events.until('run.ended', { run_id })
    expect(ended.data).to.include({ session_id: null, kind: 'run', status: 'done' })
    const names = events.seen.filter(({ data }) => data['run_id'] === run_id).map(({ event }) => event)
    expect(names[0]).to.equal('run.started')
    expect(names).to.include('run.waiting')
    expect(JSON.stringify(events.seen)).not.to.include('no event repeats')
  })

  it('D16b: a reader that comes back, to whichever gateway, gets what it has missed and only what it asks for', async () => {
    const events = await read()
    await (await product.run({ prompt: 'one' })).all()
    await events.until('run.ended')
    const { lastId } = events
    const missed = await product.run({ prompt: 'two' })
    await missed.all()
    const again = await read('?types=run.ended', { 'last-event-id': lastId })
    expect((await again.until('run.ended')).data).to.include({ run_id: missed.runId })
    expect(again.seen).to.have.length(1)
    const byQuery = await read(`?last_event_id=${lastId}`)
    await byQuery.until('run.ended', { run_id: missed.runId })
  })

  it('D16a: the steps and the end of a plan, and the changes of flows and configuration', async () => {
    const events = await read()
    const { body } = await product.call('POST', '/plans/submit', { steps: [{ id: 'a', prompt: 'do it' }] })
    const plan_id = (body as { id: string }).id
    await events.until('plan.queued', { plan_id })
    await events.until('plan.step', { plan_id, step_id: 'a', status: 'done' })
    expect((await events.until('plan.ended', { plan_id })).data).to.include({ status: 'done' })
    expect((await product.call('PUT', '/flows/greet', FLOW)).status).to.be.below(300)
    expect((await events.until('flow.changed')).data).to.include({ flow: 'greet', flow_version: 1, change: 'saved' })
    await product.call('PUT', '/config/secrets/main', { value: 'sk-0123456789abcdef' })
    const changed = await events.until('config.changed')
    expect(changed.data['changed']).to.deep.equal([{ part: 'secret', name: 'main' }])
  })

  it('D16b: an unknown name, and an id of another form, are refused', async () => {
    for (const query of ['?types=run.finished', '?last_event_id=17', '?types=run.ended&types=run.started']) {
      const reply = await product.call('GET', `/events${query}`)
      expect(reply.status, query).to.equal(400)
    }
  })

  it('ends the streams when the server stops, whose readers go on at another', async () => {
    const other = await startProduct({ ...mongo?.env })
    const events = await TenantEvents.open(other.url)
    await Promise.all([other.close(), events.end()])
  })
})
