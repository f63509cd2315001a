import { expect } from 'chai'
import type { Broker } from '../../../../shared/cluster/commands/broker.ts'
import type { RunSummary } from '../../../../shared/cluster/commands/runs.ts'
import type { Frames } from '../../../../shared/cluster/journal/frame-stream.ts'
import { renderFrame } from '../../../../shared/cluster/journal/frames.ts'
import { AppError, notFound } from '../../../../shared/kernel/errors.ts'
import type { RunRecord } from '../../../../shared/work/runs/records/record.ts'
import { createRecordedBroker } from '../../../../shared/work/runs/records/recorded-broker.ts'
import { RunHistory } from '../../../../shared/work/runs/records/run-history.ts'
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
    } as unknown as Broker
    const records = { get: read(record), frames: read(frames), page: read([]) }
    const history = new RunHistory({
      store: records,
      retentionDays: async () => 30,
      now: () => Date.parse('2026-11-24T12:00:00.000Z'),
    })
    return createRecordedBroker(parts, { history })
  }
  const follow = async (broker: Broker, after = 0) => {
    const pieces: Frames[] = []
    for await (const piece of await broker.followRun(TENANT, ID, after)) pieces.push(piece)
    return pieces
  }
  const framesOf = (...numbers: number[]) => numbers.map((seq) => renderFrame(seq, textOf(`${seq}`))).join('')
  const failureOf = (call: Promise<unknown>) => call.then(() => undefined).catch((cause: unknown) => cause)

  it('D20.1: reads the record of a run that no process knows', async () => {
    const broker = setUp({ record: recordOf(1) })
    expect(await broker.getRun(TENANT, ID)).to.deep.equal(recordOf(1))
    expect(await failureOf(broker.cancelRun(TENANT, ID)), 'it has ended already').to.equal(undefined)
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
    expect(await get({ known, store: new AppError('unavailable', 'the store is away') })).to.equal(known)
    const running: RunSummary = { ...known, status: 'running', ended_at: null }
    for (const each of [running, recordOf(1, { kind: 'flow' }), record])
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
