import { expect } from 'chai'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { createIdempotency } from '../../../shared/platform/store/idempotency.ts'
import { useTestStore } from '../../support/test-store.ts'
import { DONE, framesOf, LIVE_RUN, useGateways } from '../setup.ts'

const CHAT = { model: 'main', messages: [{ role: 'user', content: 'hi' }] }
const RESPONSE = { model: 'main', input: 'hi' }

describe('a request that its sender repeats by itself, without a key', () => {
  const stores = useTestStore({ perTest: true })
  const start = useGateways()

  /** Two gateways of the same cluster, and the runs that they have started, each with its session. */
  async function cluster() {
    const runs = new Map<string, string | undefined>()
    const open = (session?: string) => {
      const runId = `run_${String(runs.size + 1).padStart(32, '0')}`
      runs.set(runId, session)
      return { runId, frames: framesOf({ type: 'text', text: 'Hello.' }, DONE) }
    }
    const gateway = (subject: string) =>
      start({
        startKeys: createIdempotency(stores.store),
        identify: async () => ({ tenant: DEFAULT_TENANT, subject }),
        methods: {
          startRun: async () => open(),
          sendMessage: async (_tenant, sessionId) => open(sessionId),
          followRun: async () => framesOf({ type: 'text', text: 'Hello.' }, DONE),
          getRun: async (_tenant, id) => ({ ...LIVE_RUN, run_id: id, session_id: runs.get(id) ?? '' }),
        },
      })
    return { runs, one: await gateway('ada'), two: await gateway('ada'), other: await gateway('bob') }
  }

  it('D39.6: joins the run of the first attempt, through any gateway, and says so', async () => {
    for (const [path, body] of [
      ['/openai/v1/chat/completions', CHAT],
      ['/openai/v1/chat/completions', { ...CHAT, stream: true }],
      ['/openai/v1/responses', RESPONSE],
    ] as const) {
      const { runs, one, two, other } = await cluster()
      const send = async (by: typeof one, count: string | undefined, what: object = body) => {
        const headers = count === undefined ? {} : { 'x-stainless-retry-count': count }
        const response = await by.post(path, what, headers)
        const text = await response.text()
        return { id: /"id":"(\w+)"/.exec(text)?.[1], replayed: response.headers.get('idempotency-replayed') }
      }
      const first = await send(one, '0')
      expect(first.replayed).to.equal(null)
      expect(await send(two, '1')).to.deep.equal({ id: first.id, replayed: 'true' })
      expect(await send(two, '2')).to.deep.equal({ id: first.id, replayed: 'true' })
      expect(runs.size, path).to.equal(1)
      await send(one, '1', { ...body, user: 'another body' })
      await send(other, '1')
      await send(one, undefined)
      await send(one, '0')
      expect(runs.size, 'another body, another caller, no count, a new attempt').to.equal(5)
    }
  })

  it('D25a: a keyed message without a session joins the session of the first one', async () => {
    const { runs, one, two } = await cluster()
    const key = { 'idempotency-key': 'k' }
    const a2a = {
      ...{ jsonrpc: '2.0', id: 1, method: 'SendMessage' },
      params: { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hi' }] } },
    }
    for (const [path, body] of [
      ['/openai/v1/responses', RESPONSE],
      ['/a2a', a2a],
    ] as const) {
      const ids = [one, two].map(async ({ post }) => {
        const text = await (await post(path, body, key)).text()
        return /"id":"((?:resp_|task_|run_)?[^"]+)"/.exec(text)?.[1]
      })
      expect(await ids[0], path)
        .to.be.a('string')
        .and.equal(await ids[1])
    }
    expect(runs.size).to.equal(2)
  })
})
