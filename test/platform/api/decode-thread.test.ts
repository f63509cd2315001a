import { once } from 'node:events'
import type { Worker } from 'node:worker_threads'
import { expect } from 'chai'
import type { AppError } from '../../../shared/kernel/errors.ts'
import { DecodeThread } from '../../../shared/platform/api/decode-thread.ts'

const LIMITS = { deadlineMs: 20_000, maxWaiting: 8, idleMs: 60_000, keptBytes: Infinity }

const task = (text: string) => ({ name: 'RunRequest', bytes: new TextEncoder().encode(text) })

const createThread = (limits: Partial<typeof LIMITS> = {}) => new DecodeThread({ ...LIMITS, ...limits })

/** Resolves with the next thread that starts. */
const nextThread = async (): Promise<Worker> => {
  const [worker] = await once(process, 'worker')
  return worker as Worker
}

describe('the decoding thread', () => {
  it('answers valid and invalid bodies in order', async () => {
    const thread = createThread()
    const decoded = await Promise.all(
      ['{"prompt":"a"}', '{', '{"prompt":"b","x":1}'].map((text) => thread.decode(task(text))),
    )
    expect(decoded).to.deep.equal([
      { value: { prompt: 'a' } },
      { refusal: { message: 'the body is not valid JSON: it ends too early, at line 1, column 2' } },
      { value: { prompt: 'b' }, ignored: ['/x'] },
    ])
  })

  it('transfers the bytes instead of copying them', async () => {
    const thread = createThread()
    const { name, bytes } = task('{"prompt":"a"}')
    const decoding = thread.decode({ name, bytes })
    expect(bytes.byteLength).to.equal(0)
    await decoding
  })

  it('a body is 503 with Retry-After when too many bodies wait', async () => {
    const thread = createThread({ maxWaiting: 1 })
    const first = thread.decode(task('{"prompt":"a"}'))
    const second = thread.decode(task('{"prompt":"b"}'))
    const third = await thread.decode(task('{"prompt":"c"}')).catch((error: AppError) => error)
    expect(third).to.include({ status: 503, retryAfterSecs: 1 })
    expect(await Promise.all([first, second])).to.have.length(2)
  })

  it('a body past its deadline is 503, its thread is ended, and the next body is decoded nevertheless', async () => {
    const limits = { ...LIMITS, deadlineMs: 1 }
    const thread = new DecodeThread(limits)
    const started = nextThread()
    const late = thread.decode(task('{"prompt":"a"}')).catch((error: AppError) => error)
    const ended = once(await started, 'exit')
    expect(await late).to.include({ status: 503, retryAfterSecs: 1 })
    await ended
    limits.deadlineMs = LIMITS.deadlineMs
    expect(await thread.decode(task('{"prompt":"b"}'))).to.deep.equal({ value: { prompt: 'b' } })
  })

  it('a body that waits past its deadline is 503, and the one before it is decoded', async () => {
    const limits = { ...LIMITS }
    const thread = new DecodeThread(limits)
    const first = thread.decode(task('{"prompt":"a"}'))
    limits.deadlineMs = 1
    const second = await thread.decode(task('{"prompt":"b"}')).catch((error: AppError) => error)
    expect(second).to.include({ status: 503 })
    expect(await first).to.deep.equal({ value: { prompt: 'a' } })
  })

  it('the thread ends when no body has come for a while, and starts again for the next one', async () => {
    const thread = createThread({ idleMs: 1 })
    const started = nextThread()
    const first = thread.decode(task('{"prompt":"a"}'))
    const ended = once(await started, 'exit')
    expect(await first).to.deep.equal({ value: { prompt: 'a' } })
    await ended
    expect(await thread.decode(task('{"prompt":"b"}'))).to.deep.equal({ value: { prompt: 'b' } })
  })

  it('the thread ends behind a body that has made it large, without one that waits behind it being late or lost', async () => {
    const thread = createThread({ keptBytes: 1 })
    const started = nextThread()
    const both = ['a', 'b'].map((prompt) => thread.decode(task(`{"prompt":"${prompt}"}`)))
    const ended = once(await started, 'exit')
    const next = nextThread()
    expect(await Promise.all(both)).to.deep.equal([{ value: { prompt: 'a' } }, { value: { prompt: 'b' } }])
    await ended
    await once(await next, 'exit')
  })
})
