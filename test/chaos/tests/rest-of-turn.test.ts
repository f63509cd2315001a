import { readdirSync } from 'node:fs'
import { expect } from 'chai'
import { epochOfRun } from '../../../shared/kernel/ids.ts'
import { Random } from '../../harness/seed.ts'
import { callApi, initOf, openStream } from '../../support/api-client.ts'
import {
  type Answer,
  type ModelServer,
  type Received,
  startModelServer,
} from '../../support/model-server/model-server.ts'
import { useMongo } from '../../support/mongo.ts'
import { until } from '../../support/until.ts'
import { createSessions } from '../sessions.ts'
import { World } from '../world.ts'

/** Where a message has its sender's epoch. */
const EPOCH_AT = 1
/** Goes on until its worker is dead. */
const WORK = 'echo begun >> effect.txt; while [ -d /proc/$PPID ]; do sleep 0.1; done'

describe('a worker that dies when it has stored a turn, the rest of which has not reached its client', () => {
  const mongo = useMongo()
  let model: ModelServer
  let world: World
  let release: PromiseWithResolvers<void>
  before(async () => {
    model = await startModelServer()
    model.otherwise(answer)
    world = await openWorld()
  })
  beforeEach(() => {
    release = Promise.withResolvers()
  })
  after(async () => {
    await world?.[Symbol.asyncDispose]()
    await model.close()
  })

  const words = (...rest: unknown[]) =>
    [{ text: 'par' }, { hold: release.promise }, { text: 'tial' }, ...rest] as Answer
  function answer({ body }: Received): Answer {
    const messages = body['messages'] as { role: string; content: unknown }[]
    const prompt = String(messages.findLast(({ role }) => role === 'user')?.content)
    const results = messages.filter(({ role }) => role === 'tool').length
    if (prompt === 'end') return words()
    if (prompt !== 'go on') return 'hello'
    if (results === 0) return words({ tool: 'Glob', input: { pattern: '*' } })
    return results === 1 ? [{ tool: 'Bash', input: { command: WORK } }] : 'whole'
  }

  const openWorld = () =>
    World.open({
      ...{ random: new Random(1), gateways: 2, workers: 2, hasProxies: 'gateway' },
      env: {
        ...mongo.env,
        MODEL_PROVIDER: 'openai-compatible',
        MODEL: 'm',
        MODEL_BASE_URL: model.url,
        DURABILITY: 'runs',
        ENABLE_BASH: 'true',
        TOOL_PERMISSIONS: '{"Bash":"allow"}',
      },
    })

  /** Sends a message, and kills its worker when that has stored what `isStored` asks for. Its messages are lost from the first delta on. */
  async function lose(prompt: string, isStored: (runId: string, url: string) => Promise<boolean>) {
    const [lossy, other] = world.gateways
    const [id] = await createSessions(world, 1)
    const stream = await openStream(`${lossy?.url}/sessions/${id}/messages`, initOf('POST', { prompt }))
    await stream.until('text_delta')
    const epoch = epochOfRun(stream.runId)
    await lossy?.proxy?.mode({
      drop: ({ payload }) => payload.length > EPOCH_AT + 4 && payload.readUInt32LE(EPOCH_AT) === epoch,
    })
    release.resolve()
    await until(() => isStored(stream.runId, other?.url ?? ''), { what: 'the turn to be stored', everyMs: 100 })
    const owner = world.ownerOf(stream.runId)
    if (owner) await world.kill(owner)
    const frames = await stream.all() // Which checks its numbers, too.
    await lossy?.proxy?.mode()
    await world.start('worker')
    return frames.filter(({ data }) => data['code'] !== 'price_unknown')
  }
  const warned = { code: 'run_recovered' }

  it('D32.7a: the end of the run comes behind a warning', async () => {
    const frames = await lose('end', async (runId, url) => {
      const { body } = await callApi(`${url}/runs/${runId}`, initOf('GET'))
      return (body as { status: string }).status === 'done'
    })
    expect(frames.map(({ event }) => event).join(' ')).to.equal('turn_start text_delta warning text turn_end done')
    expect(frames[2]?.data).to.deep.include(warned).and.have.nested.property('detail.turn_number', 2)
    expect(frames[3]?.data).to.deep.equal({ text: 'partial' })
  })

  it('D32.7a: so does the rest of the turn, when the run goes on', async () => {
    const hasBegun = async () =>
      readdirSync(world.dataDir, { recursive: true, encoding: 'utf8' }).some((file) => file.endsWith('effect.txt'))
    const frames = await lose('go on', hasBegun)
    const events = frames.map(({ event }) => event).join(' ')
    expect(events).to.match(
      /^turn_start text_delta warning text tool_use tool_result turn_end warning turn_start .*done$/,
    )
    const turns = frames.filter(({ event }) => event === 'warning').map(({ data }) => data['detail'])
    expect(turns.map((detail) => (detail as { turn_number: number }).turn_number)).to.deep.equal([2, 2])
    const texts = frames.filter(({ event }) => event === 'text').map(({ data }) => data['text'])
    expect(texts).to.deep.equal(['partial', 'whole'])
  })
})
