import { expect } from 'chai'
import type { Broker } from '../../../../shared/cluster/commands/broker.ts'
import type { RunSummary } from '../../../../shared/cluster/commands/runs.ts'
import type { FrameStream, Frames } from '../../../../shared/cluster/journal/frame-stream.ts'
import { failureFrame, renderFrame } from '../../../../shared/cluster/journal/frames.ts'
import { AppError, notFound } from '../../../../shared/kernel/errors.ts'
import type { RunRecord } from '../../../../shared/work/runs/records/record.ts'
import { createRecordedBroker, withRest } from '../../../../shared/work/runs/records/recorded-broker.ts'
import { RunHistory } from '../../../../shared/work/runs/records/run-history.ts'
import type { RunWitness } from '../../../../shared/work/runs/records/run-witness.ts'
import { recordOf, runId, TENANT, textOf } from './setup.ts'

const NOTE = ': recorded without deltas\n\n'
const PIECE_CHARS = 64 * 1024
const ID = runId(1)

describe('a broker with the records of runs', () => {
  type Given = { record?: RunRecord; frames?: string; broker?: Error; store?: Error; known?: RunSummary }
  /** Where `broker` is an error, each call of the broker throws it, and `store` each of the store. */
  function setUp({ record, frames, broker = notFound('no run'), store, known }: Given) {
    const refuse = async () => {
      throw broker
    }
    const read =
      <T>(value: T) =>
      async () => {
        if (store) throw store
        return value
      }
    const parts = {
      getRun: known ? async () => known : refuse,
      followRun: refuse,
      cancelRun: refuse,
      steerRun: refuse,
    } as unknown as Broker
    const records = { get: read(record), frames: read(frames), page: read([]) }
    const history = new RunHistory({
      store: records,
      retentionDays: async () => 30,
      now: () => Date.parse('2026-11-24T12:00:00.000Z'),
    })
    return createRecordedBroker(parts, { history })
  }
  const follow = async (broker: Broker, after = 0) => readAll(await broker.followRun(TENANT, ID, after))
  const readAll = async (stream: AsyncIterable<Frames>) => {
    const pieces: Frames[] = []
    for await (const piece of stream) pieces.push(piece)
    return pieces
  }
  const framesOf = (...numbers: number[]) => numbers.map((seq) => renderFrame(seq, textOf(`${seq}`))).join('')
  const failureOf = (call: Promise<unknown>) => call.then(() => undefined).catch((cause: unknown) => cause)

  it('D20.1: reads the record of a run that no process knows', async () => {
    const broker = setUp({ record: recordOf(1) })
    expect(await broker.getRun(TENANT, ID)).to.deep.equal(recordOf(1))
    expect(await failureOf(broker.cancelRun(TENANT, ID)), 'it has ended already').to.equal(undefined)
    expect(await failureOf(broker.steerRun(TENANT, ID, { id: 's', text: 'x' }))).to.include({ kind: 'conflict' })
  })

  it('D20.4: shows what it starts to the witness, and adds what is stored of sessions to what processes know', async () => {
    const watched: unknown[] = []
    const opened = { runId: ID, frames: [] as unknown as FrameStream }
    const parts = {
      startRun: async () => opened,
      sendMessage: async () => opened,
      listRuns: async () => ({ runs: [], next_cursor: null }),
    }
    const witness = { watch: (run: unknown, about: unknown) => watched.push([run, about]) } as unknown as RunWitness
    const history = {
      list: async (_tenant: unknown, known: (filter: object) => unknown) => known({ limit: 3 }),
    } as unknown as RunHistory
    const broker = createRecordedBroker(parts as unknown as Broker, { history, witness })
    expect(await broker.startRun(TENANT, { prompt: 'one', customer_id: 'ada' })).to.equal(opened)
    expect(await broker.sendMessage(TENANT, 's', { prompt: 'two' })).to.equal(opened)
    const about = { tenant: TENANT, metadata: undefined, attachments: undefined }
    expect(watched).to.deep.equal([
      [opened, { ...about, kind: 'run', customer_id: 'ada', title: 'one' }],
      [opened, { ...about, kind: 'message', session_id: 's', customer_id: undefined, title: 'two' }],
    ])
    expect(await broker.listRuns(TENANT, { limit: 3 })).to.deep.equal({ runs: [], next_cursor: null })
    expect(broker).to.not.have.property('listSessions')
    expect(createRecordedBroker(parts as unknown as Broker, { history, sessions: {} as never })).to.have.property(
      'listSessions',
    )
    expect(createRecordedBroker(parts as unknown as Broker, { history }).startRun).to.equal(parts.startRun)
  })

  it('D32: says of a lost run whether its session is kept', async () => {
    const of = async (record: Partial<RunRecord>, sessions?: object) => {
      const store = {
        get: async () => recordOf(1, { code: 'worker_lost', status: 'failed', event_count: 0, ...record }),
        frames: async () => undefined,
        page: async () => [],
      }
      const history = new RunHistory({
        store,
        retentionDays: async () => 30,
        now: () => Date.parse('2026-11-24T12:00:00.000Z'),
      })
      const parts = { followRun: async () => Promise.reject(notFound('no run')) } as unknown as Broker
      const broker = createRecordedBroker(parts, { history, ...(sessions && { sessions: sessions as never }) })
      return (await follow(broker)).map(({ text }) => /"session_kept":(\w+)/.exec(String(text))?.[1])
    }
    expect(await of({ session_id: 's' }, {})).to.deep.equal(['true'])
    expect(await of({}, {})).to.not.deep.equal(['true'])
    expect(await of({ session_id: 's' })).to.not.deep.equal(['true'])
  })

  it('reads the record when the process does not answer', async () => {
    const away = new AppError('unavailable', 'no worker')
    expect(await setUp({ record: recordOf(1), broker: away }).getRun(TENANT, ID)).to.deep.equal(recordOf(1))
    expect(await failureOf(setUp({ broker: away }).getRun(TENANT, ID))).to.equal(away)
    const storeAway = new AppError('unavailable', 'the store is away')
    expect(await failureOf(setUp({ broker: away, store: storeAway }).getRun(TENANT, ID))).to.equal(away)
  })

  it('a run without a record is unknown, and while the store is away nobody can tell', async () => {
    const unknown = notFound('no run')
    const storeAway = new AppError('unavailable', 'the store is away')
    for (const call of ['getRun', 'followRun', 'cancelRun'] as const) {
      expect(await failureOf(setUp({ broker: unknown })[call](TENANT, ID, 0)), call).to.equal(unknown)
      const broker = setUp({ broker: unknown, store: storeAway })
      expect(await failureOf(broker[call](TENANT, ID, 0)), call).to.equal(storeAway)
    }
  })

  it('D20.5: a known run whose events are stored has the phases of its record, and none while the store is away', async () => {
    const phases = [{ kind: 'model' as const, name: 'm', turn: 1, started_ms: 0, ended_ms: 5 }]
    const [known, record] = [recordOf(1, { title: 'known' }), recordOf(1, { phases })]
    const get = (given: Given) => setUp(given).getRun(TENANT, ID)
    expect(await get({ known, record })).to.deep.equal({ ...known, phases })
    const request = { prompt: 'hi' }
    expect(await get({ known, record: recordOf(1, { request }) })).to.deep.equal({ ...known, request })
    const bug = new Error('a bug')
    expect(await failureOf(get({ known, store: bug }))).to.equal(bug)
    expect(await get({ known, store: new AppError('unavailable', 'the store is away') })).to.equal(known)
    const running: RunSummary = { ...known, status: 'running', ended_at: null }
    for (const each of [running, recordOf(1, { kind: 'flow' }), recordOf(1, { kind: 'plan' }), record])
      expect(await get({ known: each, store: new Error('must not be read') })).to.equal(each)
  })

  it('any other failure of the broker is passed on', async () => {
    const failure = new Error('a bug')
    expect(await failureOf(setUp({ record: recordOf(1), broker: failure }).getRun(TENANT, ID))).to.equal(failure)
  })

  it('D20.3: replays the frames with the numbers that they had, after a comment', async () => {
    const frames = framesOf(1, 4, 9)
    const broker = setUp({ record: recordOf(1), frames })
    expect(await follow(broker)).to.deep.equal([{ text: NOTE + frames, lastSeq: 9 }])
    expect(await follow(broker, 1)).to.deep.equal([{ text: NOTE + framesOf(4, 9), lastSeq: 9 }])
    expect(await follow(broker, 5), 'a number between two').to.deep.equal([{ text: NOTE + framesOf(9), lastSeq: 9 }])
    expect(await follow(broker, 9)).to.deep.equal([{ text: NOTE, lastSeq: 9 }])
  })

  it('D20.3: replays many frames in pieces, each of whole frames, and a frame that is longer than a piece alone', async () => {
    const texts = [...Array.from({ length: 20 }, () => 'x'.repeat(10_000)), 'y'.repeat(100_000), 'z']
    const all = texts.map((text, i) => renderFrame(i + 1, textOf(text)))
    const pieces = await follow(setUp({ record: recordOf(1), frames: all.join('') }))
    expect(pieces.map(({ text }) => text).join('') === NOTE + all.join('')).to.equal(true)
    expect(pieces.map(({ text }) => text.length > PIECE_CHARS)).to.deep.equal([false, false, false, false, true, false])
    const last = pieces.map(({ text }) => Number([...String(text).matchAll(/^id: (\d+)$/gm)].at(-1)?.[1]))
    expect(pieces.map(({ lastSeq }) => lastSeq)).to.deep.equal(last)
  })

  it('the text of an event cannot look like the end of its frame', async () => {
    const frames = [textOf('a\n\nid: 7\nevent: done\n\n'), textOf('b')]
      .map((event, i) => renderFrame(i + 1, event))
      .join('')
    const broker = setUp({ record: recordOf(1), frames })
    expect(await follow(broker, 1)).to.deep.equal([{ text: NOTE + framesOfText('b'), lastSeq: 2 }])
  })
  const framesOfText = (text: string) => renderFrame(2, textOf(text))

  it('D20.3: a run without frames ends with stream_gap', async () => {
    const [piece, ...more] = await follow(setUp({ record: recordOf(1) }), 3)
    expect(more).to.deep.equal([])
    expect(piece).to.include({ lastSeq: 3, failure: 'stream_gap' })
  })

  describe('whose run a process knows without its frames', () => {
    const GAP = failureFrame(3, 'stream_gap')
    const ended = (agoMs = 0): RunSummary => ({ ...recordOf(1), ended_at: new Date(Date.now() - agoMs).toISOString() })
    let left = 0
    const kept = (known: RunSummary | Error, { record, frames }: Given, look = () => record, first: Frames = GAP) => {
      const stream = (): FrameStream => {
        const all = [first]
        const next = async () => ({ done: all.length === 0, value: all.shift() }) as IteratorResult<Frames>
        const leave = async () => ({ done: true, value: ++left }) as const
        return { [Symbol.asyncIterator]: () => ({ next, return: leave }) }
      }
      const answer = async () => {
        if (known instanceof Error) throw known
        return known
      }
      const parts = { getRun: answer, followRun: async () => stream() } as unknown as Broker
      const store = { get: async () => look(), frames: async () => frames, page: async () => [] }
      const now = () => Date.parse('2026-11-24T12:00:00.000Z')
      return createRecordedBroker(parts, { history: new RunHistory({ store, retentionDays: async () => 30, now }) })
    }
    const given = { record: recordOf(1), frames: framesOf(1, 4, 9) }

    it('D20.3: replays its record behind the last frame that the reader has, in place of stream_gap', async () => {
      const rest = [{ text: NOTE + framesOf(4, 9), lastSeq: 9 }]
      expect(await follow(kept(ended(), given), 3)).to.deep.equal(rest)
      expect(await follow(kept(notFound('it was forgotten'), given), 3)).to.deep.equal(rest)
    })

    it('looks for the record again until it is written, which is soon after the end', async () => {
      let looks = 0
      const broker = kept(ended(), { frames: framesOf(4) }, () => (++looks > 2 ? recordOf(1) : undefined))
      expect(await follow(broker, 3)).to.deep.equal([{ text: NOTE + framesOf(4), lastSeq: 4 }])
    })

    it('passes the frames that are kept on, and the leave of the reader', async () => {
      const broker = kept(ended(), given, undefined, { text: framesOf(4), lastSeq: 4 })
      expect(await follow(broker, 3)).to.deep.equal([{ text: framesOf(4), lastSeq: 4 }])
      const frames = await broker.followRun(TENANT, ID, 3)
      left = 0
      await frames[Symbol.asyncIterator]().return?.()
      expect(left).to.equal(1)
    })

    it('passes stream_gap on while the run goes on, where nothing is recorded, and inside a large frame', async () => {
      const running: RunSummary = { ...ended(), ended_at: null }
      const none: Given = {}
      for (const broker of [
        kept(running, given),
        kept(ended(5_000), none),
        kept(ended(5_000), { record: recordOf(1) }),
      ])
        expect((await follow(broker, 3)).map(({ failure }) => failure)).to.deep.equal(['stream_gap'])
      const rest = withRest(pieces(), async () => expect.fail('it was read'))
      expect((await readAll(rest)).map(({ failure }) => failure)).to.deep.equal([undefined, 'stream_gap'])
    })
    async function* pieces(): AsyncGenerator<Frames> {
      yield { text: 'id: 4', lastSeq: 3, pieces: 1 }
      yield GAP
    }
  })

  it('D20.4: a run whose process died ends with worker_lost, also when its events were stored later', async () => {
    const record = recordOf(1, { status: 'failed', code: 'worker_lost', event_count: 0 })
    for (const frames of [{}, { frames: framesOf(1, 2) }]) {
      const broker = setUp({ record, ...frames })
      for (const after of [0, 7]) {
        const pieces = await follow(broker, after)
        expect(pieces.map(({ lastSeq, failure }) => [lastSeq, failure])).to.deep.equal([[2 ** 32 - 1, 'worker_lost']])
      }
    }
  })

  it('a run that ended with worker_lost and has events is replayed', async () => {
    const record = recordOf(1, { status: 'failed', code: 'worker_lost', event_count: 2 })
    const frames = framesOf(1, 2)
    expect(await follow(setUp({ record, frames }))).to.deep.equal([{ text: NOTE + frames, lastSeq: 2 }])
  })
})
