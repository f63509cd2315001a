import { expect } from 'chai'
import type { Broker } from '../../../shared/cluster/commands/broker.ts'
import { notFound } from '../../../shared/kernel/errors.ts'
import { until } from '../../support/until.ts'
import { sessionOf } from '../session-of.ts'
import { DONE, Feed, LIVE_RUN, PERMISSION_ID, RUN_ID, useGateways } from '../setup.ts'

const QUEUED = `run_${'ab'.repeat(16)}`
const OTHER = `perm_${'cd'.repeat(16)}`
const WAITING = { run_id: RUN_ID, permission_ids: [PERMISSION_ID] }

describe('a message of a session whose earlier one waits for permission', () => {
  const start = useGateways()

  const methods = (frames: Feed, asked: { ids: string[] }): Partial<Broker> => ({
    getSession: async () => sessionOf('s', { active_run_id: RUN_ID }),
    getRun: async () => ({ ...LIVE_RUN, ...(asked.ids.length > 0 && { permission_ids: asked.ids }) }),
    sendMessage: async () => ({ runId: QUEUED, frames }),
    followRun: async () => new Feed(),
  })

  it('D39.2: says at once which requests it waits for, and again when they are others, until its own events come', async () => {
    const [frames, asked] = [new Feed(), { ids: [PERMISSION_ID] }]
    const { post } = await start({ methods: methods(frames, asked) })
    const response = await post('/sessions/s/messages', { prompt: 'hi' })
    let text = ''
    const read = (async () => {
      for await (const chunk of response.body ?? []) text += new TextDecoder().decode(chunk)
    })()
    await until(() => text.includes(PERMISSION_ID), { what: 'the first warning' })
    expect(text).to.match(/^: ok\nid: 0\nevent: warning\ndata: /)
    expect(JSON.parse(/data: (.*)/.exec(text)?.[1] ?? '')).to.deep.include({ code: 'waiting_for_permission' })
    asked.ids = [OTHER]
    await until(() => text.includes(OTHER), { what: 'the warning of the next request' })
    asked.ids = []
    frames.push('id: 1\nevent: done\ndata: {}\n\n', 1)
    frames.end()
    await read
    expect([text.match(/event: warning/g)?.length, text.endsWith('event: done\ndata: {}\n\n')]).to.deep.equal([2, true])
  })

  it('D39.2: one in the background says it in its answer, and not where nothing waits, or where what waits is denied', async () => {
    const asked = { ids: [PERMISSION_ID] }
    const { post } = await start({ methods: methods(new Feed(), asked) })
    const send = async (body: object) =>
      (await post('/sessions/s/messages', { prompt: 'hi', background: true, ...body })).json()
    expect(await send({})).to.deep.equal({ run_id: QUEUED, waiting_for_permission: WAITING })
    expect(await send({ if_waiting: 'deny' })).to.deep.equal({ run_id: QUEUED })
    asked.ids = []
    expect(await send({ if_waiting: 'wait' })).to.deep.equal({ run_id: QUEUED })
  })

  it('D39.1: if_waiting reaches the session, and another value is refused', async () => {
    const sent: unknown[] = []
    const { post } = await start({
      methods: {
        async sendMessage(_tenant, _id, message) {
          sent.push(message)
          return { runId: QUEUED, frames: doneAt1() }
        },
      },
    })
    await (await post('/sessions/s/messages', { prompt: 'hi', if_waiting: 'deny' })).text()
    expect(sent).to.deep.equal([{ prompt: 'hi', if_waiting: 'deny' }])
    expect((await post('/sessions/s/messages', { prompt: 'hi', if_waiting: 'no' })).status).to.equal(400)
  })

  it('a session that is gone by then makes no warning and no error', async () => {
    const frames = new Feed()
    let looks = 0
    const getSession = async () => {
      looks++
      throw notFound('gone')
    }
    const { post } = await start({ methods: { ...methods(frames, { ids: [] }), getSession } })
    const response = await post('/sessions/s/messages', { prompt: 'hi' })
    await until(() => looks > 0, { what: 'a look' })
    frames.push(`id: 1\nevent: done\ndata: ${JSON.stringify(DONE)}\n\n`, 1)
    frames.end()
    expect(await response.text()).not.to.include('warning')
  })
})

describe('a run that waits for a place among those of its tenant', () => {
  const start = useGateways()

  for (const [how, path, body] of [
    ['that starts it', '/agent/run', { prompt: 'hi', wait_secs: 60 }],
    ['of a message', '/sessions/s/messages', { prompt: 'hi', wait_secs: 60 }],
    ['that comes back', `/runs/${QUEUED}/events`, undefined],
  ] as const)
    it(`D54.3: the stream ${how} says its place until its own events come, and again when it is another one`, async () => {
      const frames = new Feed()
      let place: number | undefined = 2
      const opened = async () => ({ runId: QUEUED, frames })
      const { post, get } = await start({
        methods: {
          ...{ startRun: opened, sendMessage: opened, followRun: async () => frames },
          getSession: async () => sessionOf('s', { active_run_id: null }),
          getRun: async () => ({ ...LIVE_RUN, ...(place && { place, expected_start: null }) }),
        },
      })
      const response = await (body ? post(path, body) : get(path))
      let text = ''
      const read = (async () => {
        for await (const chunk of response.body ?? []) text += new TextDecoder().decode(chunk)
      })()
      const told = (at: number) => `id: 0\nevent: waiting\ndata: {"place":${at},"expected_start":null}\n\n`
      await until(() => text === `: ok\n${told(2)}`, { what: 'its place' })
      if (path === '/agent/run') {
        place = 1
        await until(() => text.endsWith(told(1)), { what: 'the next place' })
      }
      place = undefined
      frames.push('id: 1\nevent: done\ndata: {}\n\n', 1)
      frames.end()
      await read
      expect(text.endsWith('event: done\ndata: {}\n\n')).to.equal(true)
    })
})

function doneAt1(): Feed {
  const frames = new Feed()
  frames.push('id: 1\nevent: done\ndata: {}\n\n', 1)
  frames.end()
  return frames
}
