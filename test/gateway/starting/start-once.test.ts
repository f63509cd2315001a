import { expect } from 'chai'
import { type KeyedStart, StartOnce } from '../../../services/gateway/starting/start-once.ts'
import type { RunStatus } from '../../../shared/cluster/commands/runs.ts'
import type { FrameStream } from '../../../shared/cluster/journal/frame-stream.ts'
import { AppError, notFound } from '../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT as TENANT } from '../../../shared/kernel/tenant.ts'
import type { Idempotency } from '../../../shared/platform/store/idempotency.ts'
import { until } from '../../support/until.ts'
import { framesOf, LIVE_RUN } from '../setup.ts'

const USE = { operation: 'run', key: 'k1' }
const FRAMES: FrameStream = framesOf()

describe('a run that is started once for each key', () => {
  function setUp({ isForgotten = false, isAway = false, isDeaf = false, startMs = 10_000 } = {}) {
    const store = { isDeaf }
    const kept = new Map<string, { hash: string; id: string }>()
    const assertAnswered = () => {
      if (store.isDeaf) throw new AppError('unavailable', 'the store does not answer')
    }
    const keys: Idempotency = {
      async reserve(_tenant, { key, hash, id }) {
        const taken = kept.get(key)
        if (taken) return taken.hash === hash ? { state: 'taken', id: taken.id } : { state: 'mismatch' }
        kept.set(key, { hash, id })
        assertAnswered()
        return { state: 'reserved' }
      },
      async replace(_tenant, { key, from, to }) {
        if (isAway) throw new AppError('unavailable', 'the store does not answer')
        const taken = kept.get(key)
        if (taken?.id !== from) return false
        taken.id = to
        assertAnswered()
        return true
      },
      async release(_tenant, { key, id }) {
        assertAnswered()
        if (kept.get(key)?.id === id) kept.delete(key)
        return true
      },
    }
    const followed: string[] = []
    const statuses = new Map<string, RunStatus>()
    const once = new StartOnce(
      keys,
      {
        async getRun(_tenant, runId) {
          const status = statuses.get(runId)
          if (!status) throw notFound('no such run')
          return { ...LIVE_RUN, run_id: runId, status, ...(status === 'failed' && { code: 'no_room' }) }
        },
        async followRun(_tenant, runId) {
          if (isForgotten) throw notFound('no such run')
          followed.push(runId)
          return FRAMES
        },
      },
      startMs,
    )
    const start = (
      open: KeyedStart['open'],
      request: unknown = { prompt: 'hi' },
      more: Pick<KeyedStart, 'attempt' | 'isAnother'> = {},
    ) => once.start(TENANT, { ...USE, request, open, ...more })
    return { start, kept, followed, store, statuses }
  }
  const opens = (runId: string) => async () => ({ runId, frames: FRAMES })
  const never = async () => expect.fail('it was started again')
  const refusalOf = (work: Promise<unknown>): Promise<AppError> =>
    work.then(
      () => expect.fail('nothing was refused'),
      (cause: unknown) => (cause instanceof AppError ? cause : Promise.reject(cause)),
    )

  it('D25a: the same request again joins the run from its first event', async () => {
    const { start, followed } = setUp()
    expect(await start(opens('run_1'))).to.include({ runId: 'run_1', isReplayed: false })
    expect(await start(never)).to.include({ runId: 'run_1', isReplayed: true })
    expect(followed).to.deep.equal(['run_1'])
  })

  it('D31.5a: a message whose run has failed runs again, once for all who send it again, and so does one whose run is forgotten', async () => {
    const { start } = setUp()
    const hasFailed = async (runId: string) => runId === 'run_1'
    await start(opens('run_1'), undefined, { isAnother: hasFailed })
    expect(await start(opens('run_2'), undefined, { isAnother: hasFailed })).to.include({
      runId: 'run_2',
      isReplayed: false,
    })
    expect(await start(never, undefined, { isAnother: hasFailed })).to.include({ runId: 'run_2', isReplayed: true })
    const forgotten = setUp({ isForgotten: true })
    const isFine = async () => false
    await forgotten.start(opens('run_1'), undefined, { isAnother: isFine })
    expect(await forgotten.start(opens('run_2'), undefined, { isAnother: isFine })).to.include({
      runId: 'run_2',
      isReplayed: false,
    })
  })

  it('D54.4: a run that had no room has freed its key, once for all who send it again', async () => {
    const { start, statuses, kept } = setUp()
    await start(opens('run_1'))
    statuses.set('run_1', 'failed')
    const again = await Promise.all([start(opens('run_2')), start(opens('run_2'))])
    expect(again.map(({ runId }) => runId)).to.deep.equal(['run_2', 'run_2'])
    expect(again.map(({ isReplayed }) => isReplayed).toSorted()).to.deep.equal([false, true])
    expect(kept.get('k1')?.id).to.equal('run_2')
  })

  it('D25a: one that comes while the run is being started waits for it', async () => {
    const { start, kept } = setUp()
    const opening = Promise.withResolvers<{ runId: string; frames: FrameStream }>()
    const first = start(() => opening.promise)
    await until(() => kept.size > 0, { what: 'the key to be reserved' })
    const second = start(never)
    opening.resolve({ runId: 'run_1', frames: FRAMES })
    expect((await first).isReplayed).to.equal(false)
    expect(await second).to.include({ runId: 'run_1', isReplayed: true })
  })

  describe('whose client sends no key and counts its repetitions', () => {
    const body = { prompt: 'hi' }

    it('D39.6: a second attempt joins the run of the first, and a first one starts another run', async () => {
      const { start, statuses } = setUp()
      statuses.set('run_1', 'running').set('run_2', 'done')
      expect(await start(opens('run_1'), body, { attempt: 'first' })).to.include({ runId: 'run_1', isReplayed: false })
      expect(await start(never, body, { attempt: 'again' })).to.include({ runId: 'run_1', isReplayed: true })
      expect(await start(opens('run_2'), body, { attempt: 'first' })).to.include({ runId: 'run_2', isReplayed: false })
      expect(await start(never, body, { attempt: 'again' })).to.include({ runId: 'run_2', isReplayed: true })
    })

    it('D39.6: a second attempt starts the run where none was started, or it has failed, was cancelled or is forgotten', async () => {
      const { start, statuses } = setUp()
      expect(await start(opens('run_1'), body, { attempt: 'again' })).to.include({ runId: 'run_1', isReplayed: false })
      for (const [i, status] of (['failed', 'cancelled', undefined] as const).entries()) {
        statuses.clear()
        if (status) statuses.set(`run_${i + 1}`, status)
        const started = await start(opens(`run_${i + 2}`), body, { attempt: 'again' })
        expect(started, status).to.include({ runId: `run_${i + 2}`, isReplayed: false })
      }
    })

    it('D39.6: first attempts that begin at the same time all start, and second ones wait for the one that has the key', async () => {
      const { start, kept, statuses } = setUp()
      statuses.set('run_1', 'running')
      const opening = Promise.withResolvers<{ runId: string; frames: FrameStream }>()
      const first = start(() => opening.promise, body, { attempt: 'first' })
      await until(() => kept.size > 0, { what: 'the key to be reserved' })
      expect(await start(opens('run_2'), body, { attempt: 'first' })).to.include({ runId: 'run_2', isReplayed: false })
      const again = start(never, body, { attempt: 'again' })
      opening.resolve({ runId: 'run_1', frames: FRAMES })
      expect(await first).to.include({ runId: 'run_1', isReplayed: false })
      expect(await again).to.include({ runId: 'run_1', isReplayed: true })
    })
  })

  describe('whose process dies in the start', () => {
    const NAMED = 'run_00000001aaaa'
    /** The first process names the run, asks a worker, and is not heard of again. */
    async function leave({ start }: ReturnType<typeof setUp>, named?: string): Promise<void> {
      const asked = Promise.withResolvers<void>()
      void start(async (onNamed) => {
        if (named !== undefined) await onNamed(named)
        asked.resolve()
        return new Promise(() => {})
      })
      await asked.promise
    }
    it('D25a: is joined where a worker has it, and not before that process has had its time', async () => {
      const made = setUp({ startMs: 120 })
      await leave(made, NAMED)
      const from = performance.now()
      expect(await made.start(never)).to.include({ runId: NAMED, isReplayed: true })
      expect(performance.now() - from).to.be.at.least(120)
      expect(made.kept.get(USE.key)?.id, 'for the next request, which need not wait').to.equal(NAMED)
      expect(await made.start(never)).to.include({ runId: NAMED, isReplayed: true })
      expect(made.followed).to.deep.equal([NAMED, NAMED])
    })

    it('is refused when no worker has it', async () => {
      const made = setUp({ isForgotten: true, startMs: 120 })
      await leave(made, NAMED)
      const refused = await refusalOf(made.start(never))
      expect([refused.status, refused.message.includes('did not say whether its run began')]).to.deep.equal([409, true])
    })

    it('D25a: is started by the request that comes again when no worker was asked, and by the first process no more', async () => {
      const made = setUp({ startMs: 120 })
      let nameLate: ((runId: string) => Promise<void>) | undefined
      void made.start(async (onNamed) => {
        nameLate = onNamed
        return new Promise(() => {})
      })
      await until(() => nameLate !== undefined, { what: 'the first start' })
      expect(await made.start(opens('run_2'))).to.include({ runId: 'run_2', isReplayed: false })
      expect(await refusalOf(nameLate?.('run_1') ?? never())).to.include({ kind: 'unavailable' })
      expect(made.kept.get(USE.key)?.id).to.equal('run_2')
    })
  })

  it('D36.5: a reservation without an answer frees its key, and so does a start whose key could not be freed at once', async () => {
    const { start, kept, store } = setUp({ isDeaf: true })
    expect(await refusalOf(start(never))).to.include({ status: 503 })
    expect(kept.size).to.equal(1)
    store.isDeaf = false
    await until(() => kept.size === 0, { what: 'the key to be freed' })
    const refuse: KeyedStart['open'] = async (onNamed) => {
      store.isDeaf = true
      await onNamed('run_1')
      return never()
    }
    expect(await refusalOf(start(refuse))).to.include({ status: 503 })
    store.isDeaf = false
    await until(() => kept.size === 0, { what: 'the key of the named run to be freed' })
    expect(await start(opens('run_2'))).to.include({ runId: 'run_2', isReplayed: false })
  })

  it('a start that is refused after its run was named frees its key', async () => {
    const { start, kept } = setUp()
    const full = new AppError('rate_limit', 'no room')
    const refuse: KeyedStart['open'] = async (onNamed) => {
      await onNamed('run_1')
      throw full
    }
    expect(await refusalOf(start(refuse))).to.equal(full)
    expect(kept.size).to.equal(0)
  })

  it('a run whose key cannot be kept goes on all the same', async () => {
    const { start, kept } = setUp({ isAway: true })
    expect(await start(opens('run_1'))).to.include({ runId: 'run_1', isReplayed: false })
    expect(kept.size).to.equal(1)
  })

  it('D25a: another request under the key is refused', async () => {
    const { start } = setUp()
    await start(opens('run_1'))
    expect(await refusalOf(start(never, { prompt: 'ho' }))).to.include({ status: 409, code: 'idempotency_mismatch' })
  })

  it('a start that is refused frees its key', async () => {
    const { start } = setUp()
    const full = new AppError('rate_limit', 'no room')
    expect(await refusalOf(start(() => Promise.reject(full)))).to.equal(full)
    expect(await start(opens('run_2'))).to.include({ runId: 'run_2', isReplayed: false })
  })

  it('a run that is over for too long cannot be joined, and is not started again', async () => {
    const { start } = setUp({ isForgotten: true })
    await start(opens('run_1'))
    const refused = await refusalOf(start(never))
    expect([refused.status, refused.message]).to.satisfy(
      ([status, message]: [number, string]) => status === 409 && message.includes('run_1, which ended too long ago'),
    )
  })
})
