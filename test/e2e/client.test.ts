import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import {
  AgentEngine,
  type PermissionAsk,
  type PlanProgress,
  type RunEvent,
  RunFailed,
  type RunView,
  reduceRun,
} from '../../shared/client/client.ts'
import { CuttingProxy } from '../support/cutting-proxy.ts'
import { useMongo } from '../support/mongo.ts'
import { inBothForms, useProduct } from '../support/product.ts'
import { until } from '../support/until.ts'

const WRITE = { tool: 'Write', input: { path: 'notes/a.txt', content: 'hello' } }

inBothForms('the client', (startProduct, form) => {
  const mongo = form === 'cluster' ? useMongo() : undefined
  let engine: AgentEngine

  const product = useProduct(() =>
    startProduct({
      ...mongo?.env,
      MASTER_KEY: randomBytes(32).toString('base64'),
      ALLOW_PRIVATE_URLS: 'true',
    }),
  )
  before(async () => {
    product.model.otherwise(() => 'fine')
    engine = new AgentEngine({ url: product.url })
  })

  it('reads a run as events and as a result, which stand beside each other', async () => {
    product.model.answer('Hello there')
    const run = engine.run({ prompt: 'hi' })
    const events: RunEvent[] = []
    for await (const event of run) events.push(event)
    expect(events.map(({ id }) => id)).to.deep.equal(events.map((_, i) => i + 1))
    expect(events.at(-1)?.event).to.equal('done')
    const result = await run.result()
    expect(result).to.include({ runId: run.id, output: 'Hello there', stopReason: 'end_turn' })
    expect(result.usage?.turn_count).to.equal(1)
  })

  it('leaves a run and goes on behind the last event', async () => {
    product.model.answer('one two three')
    const run = engine.run({ prompt: 'hi' })
    for await (const { event } of run) if (event === 'turn_start') break
    const rest: RunEvent[] = []
    for await (const event of engine.runs.resume(run.id ?? '', { after: run.lastEventId })) rest.push(event)
    expect(rest[0]?.id).to.equal(run.lastEventId + 1)
    expect((await run.result()).output).to.equal('one two three')
  })

  it('cancels a run, which then throws what the run has failed with', async () => {
    const held = Promise.withResolvers<void>()
    product.model.answer([{ hold: held.promise }, { text: 'late' }])
    const run = engine.run({ prompt: 'hi' })
    const asked = product.model.requests.length
    await run.started()
    await until(() => product.model.requests.length > asked, { what: 'the model to be asked' })
    await run.cancel()
    const failure = await run.result().catch((cause: unknown) => cause)
    held.resolve()
    expect(failure).to.be.instanceOf(RunFailed)
    expect(failure).to.include({ code: 'cancelled', runId: run.id })
  })

  it('answers permission requests of a conversation beside its reading, also of sub-agents', async () => {
    const agent = { tool: 'Agent', input: { description: 'writes', prompt: 'write it' } }
    product.model.answer([agent], [WRITE], 'written', 'done')
    const chat = await engine.sessions.open('client-chat')
    const asks: PermissionAsk[] = []
    const run = chat.send('go', {
      onPermission: async (ask) => {
        asks.push(ask)
        return ask.allow({ remember: true })
      },
    })
    let view: RunView | undefined
    for await (const event of run) view = reduceRun(view, event, Date.now())
    expect((await run.result()).output).to.equal('done')
    expect(asks.map(({ toolName }) => toolName)).to.deep.equal(['Write'])
    expect(asks[0]?.subagentId).to.match(/^sub_/)
    expect(asks[0]?.preview).to.include({ kind: 'diff' })
    expect(asks[0]?.resolution).to.include({ allow: true, how: 'reply' })
    expect(view?.permissions.map(({ state }) => state)).to.deep.equal(['allowed'])
    expect((await engine.sessions.open('client-chat')).id).to.equal(chat.id)
    const roles = (await chat.messages().all()).map(({ role }) => role)
    expect(roles[0]).to.equal('user')
  })

  it('shows the requests of all runs in the inbox, and tells when somebody else has answered', async () => {
    product.model.answer([WRITE], 'done')
    const run = engine.run({ prompt: 'hi' })
    const ended = run.result()
    await run.started()
    for await (const ask of engine.permissions.watch()) {
      if (ask.runId !== run.id) continue
      await engine.permissions.reply(ask.runId, ask.id, { allow: false, reason: 'not now' })
      expect(await ask.allow()).to.equal(false)
      await new Promise((resolve) => (ask.signal.aborted ? resolve(0) : ask.signal.addEventListener('abort', resolve)))
      expect(ask.resolution).to.include({ allow: false, how: 'reply' })
      break
    }
    expect((await ended).output).to.equal('done')
  })

  it('submits a plan and follows it to its end', async () => {
    const plan = await engine.plans.submit({
      steps: [
        { id: 'a', prompt: 'one' },
        { id: 'b', prompt: 'two', depends_on: ['a'] },
      ],
    })
    const seen: PlanProgress[] = []
    for await (const progress of plan.progress()) seen.push(progress)
    expect(seen[0]).to.include({ total: 2 })
    expect(seen.map(({ done }) => done)).to.deep.equal(seen.map(({ done }) => done).toSorted())
    expect(seen.at(-1)).to.include({ done: 2, status: 'done' })
    expect((await plan.result()).step_outputs).to.deep.equal({ a: 'fine', b: 'fine' })
  })

  it('leaves a text whole and brings each event once through a proxy that breaks each connection after 2,000 bytes', async () => {
    const words = Array.from({ length: 100 }, (_, i) => `word-${i}`).join(' ')
    product.model.answer([{ text: words, everyMs: 5 }, WRITE], [{ text: words, everyMs: 5 }])
    using proxy = await CuttingProxy.open(Number(new URL(product.url).port), { afterBytes: 2_000 })
    const { pathname } = new URL(product.url)
    const cut = new AgentEngine({ url: `http://127.0.0.1:${proxy.port}${pathname}` })
    const run = cut.run({ prompt: 'hi' }, { onPermission: (ask) => ask.allow() })
    const ids: number[] = []
    let text = ''
    const copying = (async () => {
      for await (const part of run.textStream()) text += part
    })()
    for await (const { id } of run) ids.push(id)
    await copying
    expect((await run.result()).output).to.equal(`${words}\n\n${words}`)
    expect(text).to.equal(`${words}\n\n${words}`)
    expect(ids).to.deep.equal(ids.map((_, i) => i + 1))
    expect(proxy.cuts).to.be.greaterThan(5)
  })

  it('lists with raw paths and by pages', async () => {
    expect((await engine.me()).tenant).to.equal('t_default')
    const { tools } = await engine.raw.get('/tools')
    expect(tools.map(({ name }) => name)).to.include('Write')
    await engine.run({ prompt: 'hi' }).result()
    expect(await engine.runs.list({ limit: 1 }).all(2)).to.have.length(2)
  })
})
