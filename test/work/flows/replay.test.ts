import { expect } from 'chai'
import type { FrameStream, Frames } from '../../../shared/cluster/journal/frame-stream.ts'
import { DEFAULT_TENANT as TENANT } from '../../../shared/kernel/tenant.ts'
import { DispatchLog } from '../../../shared/work/flows/dispatch-log.ts'
import { framesOf, pauseOf, ReplayStream, type TimedFrame } from '../../../shared/work/flows/replay.ts'
import { FAILED, newDispatch, OK, OUTPUT, START } from '../../contract/dispatch-setup.ts'
import { elapsedMs } from '../../support/elapsed.ts'
import { useHistory } from './history-setup.ts'

type Frame = { id: number; event: string; data: Record<string, unknown> }

async function read(stream: FrameStream): Promise<{ values: Frames[]; frames: Frame[] }> {
  const values: Frames[] = []
  for await (const value of stream) values.push(value)
  const texts = values.flatMap(({ text }) => String(text).split('\n\n').slice(0, -1))
  return { values, frames: texts.map(parse) }
}

function parse(text: string): Frame {
  const [id = '', event = '', data = ''] = text.split('\n').map((line) => line.slice(line.indexOf(':') + 2))
  return { id: Number(id), event, data: JSON.parse(data) as Record<string, unknown> }
}

describe('the replay of an execution', () => {
  const history = useHistory()
  let log: DispatchLog
  before(() => {
    log = new DispatchLog({ dispatches: history.dispatches, retentionDays: async () => 30, now: history.now })
  })
  const replay = async (traceId: string, options = {}) => read(await log.replay(TENANT, traceId, options))

  it('D6.8: sends the stored events and the result, numbered from 1, each with its time, at once', async () => {
    const ended = await history.end(await history.queue())
    const { values, frames } = await replay(ended.trace_id)
    expect(values).to.have.length(1)
    expect(values[0]?.lastSeq).to.equal(3)
    expect(frames).to.deep.equal([
      ...OUTPUT.timeline.map(({ event, at, data }, i) => ({ id: i + 1, event, data: { ...data, at } })),
      {
        id: 3,
        event: 'result',
        data: {
          flow_id: 'summarize',
          flow_version: 3,
          trace_id: ended.trace_id,
          verdict: 'ok',
          output: OUTPUT.output,
          served_instance: 'main',
          at: ended.ended_at,
        },
      },
    ])
  })

  it('ends with the error of a failed execution, and with `invalid_output` without an output', async () => {
    const failed = await history.end(await history.queue(), FAILED)
    const { frames } = await replay(failed.trace_id)
    expect(frames.map(({ event }) => event)).to.deep.equal(['started', 'progress', 'error'])
    expect(frames.at(-1)?.data).to.include({
      error: 'the main agent failed',
      code: 'provider_auth',
      status: 502,
      trace_id: failed.trace_id,
      at: failed.ended_at,
    })
    const invalid = await history.end(
      await history.queue(),
      { ...OK, status: 'invalid_output' },
      { ...OUTPUT, output: null },
    )
    expect((await replay(invalid.trace_id)).frames.at(-1)?.data).to.include({ verdict: 'invalid_output', output: null })
  })

  it('of an execution that no executor began is its error alone, or nothing while it waits', async () => {
    const queued = await history.queue()
    expect((await replay(queued.trace_id)).frames).to.deep.equal([])
    await history.dispatches.end(TENANT, queued.trace_id, { executor: null, result: FAILED })
    expect((await replay(queued.trace_id)).frames.map(({ event }) => event)).to.deep.equal(['error'])
    const error = { status: 400, type: 'invalid_request_error', message: 'no instance is named x' }
    const rejected = await history.queue({ status: 'rejected', error, ended_at: history.now().toISOString() })
    const { frames } = await replay(rejected.trace_id)
    expect(frames).to.have.length(1)
    expect(frames[0]).to.deep.include({ id: 1, event: 'error' })
    expect(frames[0]?.data).to.include({ error: error.message, status: 400, at: rejected.ended_at })
  })

  it('of a running execution is its start, without an end; of a lost one its start and the error', async () => {
    const queued = await history.queue()
    const { trace_id } = queued
    await history.dispatches.begin(TENANT, trace_id, 7)
    const { frames } = await replay(trace_id)
    expect(frames).to.deep.equal([
      {
        id: 1,
        event: 'started',
        data: {
          trace_id,
          flow_id: 'summarize',
          flow_version: 3,
          provider_instance: 'main',
          model: 'm1',
          at: queued.started_at,
        },
      },
    ])
    await history.dispatches.end(TENANT, trace_id, { executor: 7, result: FAILED })
    expect((await replay(trace_id)).frames.map(({ event }) => event)).to.deep.equal(['started', 'error'])
  })

  it('without payloads shows the output only to the client that waits for it', async () => {
    const ended = await history.end(await history.queue({ keeps_payloads: false }))
    const { frames } = await replay(ended.trace_id)
    expect(frames.map(({ event }) => event)).to.deep.equal(['started', 'result'])
    expect(frames.at(-1)?.data).to.include({ verdict: 'ok', output: null })
    const answer = (await replay(ended.trace_id, { isForCaller: true })).frames
    expect(answer.map(({ event }) => event)).to.deep.equal(['started', 'progress', 'result'])
    expect(answer.at(-1)?.data['output']).to.deep.equal(OUTPUT.output)
  })

  it('goes on after the last frame that the reader has', async () => {
    const { trace_id } = await history.end(await history.queue())
    const idsAfter = async (after: number) => (await replay(trace_id, { after })).frames.map(({ id }) => id)
    expect(await idsAfter(0)).to.deep.equal([1, 2, 3])
    expect(await idsAfter(2)).to.deep.equal([3])
    for (const after of [3, 99]) expect(await idsAfter(after)).to.deep.equal([])
  })

  it('takes a speed from 0.1 to 100', async () => {
    const { trace_id } = await history.end(await history.queue())
    for (const speed of [0, 0.09, 101, -1, Number.NaN, Infinity]) {
      const failure = await log.replay(TENANT, trace_id, { speed }).catch((cause: unknown) => cause)
      expect(failure, String(speed)).to.include({ kind: 'invalid_request', param: '/speed' })
    }
    for (const speed of [0.1, 100]) expect((await replay(trace_id, { speed, after: 2 })).frames).to.have.length(1)
  })
})

describe('the pauses of a replay', () => {
  const frame = (seq: number, atMs: number): TimedFrame => ({ text: `${seq};`, seq, atMs: START + atMs })
  const frames = [frame(1, 0), frame(2, 60), frame(3, 60), frame(4, 40), frame(5, 120)]
  /** How long after the first frame each of the others came. */
  const timesOf = async (stream: ReplayStream) => {
    const times: number[] = []
    for await (const { lastSeq } of stream) times[lastSeq - 1] = performance.now()
    return times.map((time) => time - (times[0] ?? 0))
  }

  it('are the original ones divided by the speed, and none before the first frame', async () => {
    const start = elapsedMs()
    const stream = new ReplayStream([frame(1, 5_000), ...frames.slice(1)], { speed: 1 })
    await stream.next()
    expect(elapsedMs() - start).to.be.below(1_000)
    const real = await timesOf(new ReplayStream(frames, { speed: 1 }))
    for (const [i, ms] of [0, 60, 60, 60, 140].entries()) expect(real[i]).to.be.at.least(ms - 2)
    const slow = await timesOf(new ReplayStream(frames, { speed: 0.5 }))
    expect(slow[4]).to.be.at.least(278)
  })

  it('end when the reader leaves, and leave no timer behind that keeps the process alive', async () => {
    const stream = new ReplayStream([frame(1, 0), frame(2, 3_600_000), frame(3, 3_600_000)], { speed: 1 })
    expect(await stream.next()).to.deep.equal({ done: false, value: { text: '1;', lastSeq: 1 } })
    const open = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = open()
    const next = stream.next()
    expect(open()).to.equal(before)
    await stream.return()
    expect(await next).to.deep.equal({ done: true, value: undefined })
    expect(await stream.next()).to.deep.equal({ done: true, value: undefined })
  })

  it('are a minute at most, and none when the times go backwards', () => {
    expect([0, 500, 59_999, 60_000, 3_600_000, -5].map((gapMs) => pauseOf(gapMs, 1))).to.deep.equal([
      0, 500, 59_999, 60_000, 60_000, 0,
    ])
    expect(pauseOf(3_000_000, 100)).to.equal(30_000)
    expect(pauseOf(3_000, 0.1)).to.equal(30_000)
  })
})

describe('a reader that has all frames', () => {
  it('is told that the execution is over only when it has ended', () => {
    const frames = [{ text: '1;', seq: 1, atMs: START }]
    const isOver = (options: ConstructorParameters<typeof ReplayStream>[1]) => new ReplayStream(frames, options).isOver
    expect([isOver({ after: 1, hasEnded: true }), isOver({ hasEnded: true }), isOver({ after: 1 })]).to.deep.equal([
      ...[true, false, false],
    ])
  })
})

describe('the frames of an execution', () => {
  it('name the event after the stored one, whatever its data holds', () => {
    const data = { type: 'text_delta', at: 'never', event: 'x' }
    const output = { ...OUTPUT, timeline: [{ event: 'warning', at: '2026-11-22T10:00:00.000Z', data }] }
    const [first] = framesOf(newDispatch(START, { status: 'running', executor: 1 }), output)
    expect(first?.text).to.match(/^id: 1\nevent: warning\ndata: \{/)
    expect(first?.text).to.include('"at":"2026-11-22T10:00:00.000Z"')
  })
})
