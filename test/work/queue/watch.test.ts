import { expect } from 'chai'
import type { Frames } from '../../../shared/cluster/journal/frame-stream.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import { watch } from '../../../shared/work/queue/watch.ts'
import { FedStream } from '../flows/calls/fed-stream.ts'

const SILENT_MS = 5

const frames = (lastSeq: number, text = `frame ${lastSeq}`): Frames => ({ text, lastSeq })

async function readAll(run: AsyncIterable<Frames>): Promise<Frames[]> {
  const read: Frames[] = []
  for await (const each of run) read.push(each)
  return read
}

const never = async () => ({ frames: frames(0, 'never') })

/** A run whose store is asked for the end after a short silence, and the numbers of the last frames with which it was asked. */
function watchSilent(stream: FedStream, findEnd: () => Promise<string | undefined>) {
  const asked: number[] = []
  const run = watch(stream, {
    after: 0,
    silentMs: SILENT_MS,
    async findEnd(lastSeq) {
      asked.push(lastSeq)
      const text = await findEnd()
      return text === undefined ? undefined : { frames: frames(lastSeq, text) }
    },
  })
  return { run, asked }
}

describe('the watched frames of a queued run', () => {
  it('are those of the stream, and end with it', async () => {
    const stream = new FedStream()
    const run = watch(stream, { after: 0, findEnd: never })
    stream.push(frames(1))
    stream.push(frames(2))
    stream.end()
    expect(await readAll(run)).to.deep.equal([frames(1), frames(2)])
  })

  it('go on after a silence while the execution goes on, and lose no frame', async () => {
    const stream = new FedStream()
    const { run, asked } = watchSilent(stream, async () => {
      if (asked.length === 3) stream.push(frames(1))
      return undefined
    })
    expect((await run.next()).value).to.deep.equal(frames(1))
    expect(asked).to.deep.equal([0, 0, 0])
  })

  it('go on while the store does not answer, and end with the failure of a stream that breaks meanwhile', async () => {
    const stream = new FedStream()
    const { run, asked } = watchSilent(stream, async () => {
      if (asked.length === 2) stream.push({ ...frames(0, 'lost'), failure: 'worker_lost' })
      throw new AppError('unavailable', 'the store does not answer')
    })
    expect(await readAll(run)).to.deep.equal([frames(0, 'lost')])
    expect(asked).to.have.length(3)
  })

  it('end with the frame of the stored record when the execution has ended in silence', async () => {
    const stream = new FedStream()
    stream.push(frames(7))
    const { run, asked } = watchSilent(stream, async () => 'the end')
    expect(await readAll(run)).to.deep.equal([frames(7), frames(7, 'the end')])
    expect(asked).to.deep.equal([7])
    expect(stream.returns).to.equal(1)
  })

  it('end with the frame of the stored record when the executor was lost', async () => {
    const stream = new FedStream()
    stream.push(frames(3))
    stream.push({ ...frames(3, 'the worker was lost'), failure: 'worker_lost' })
    const run = watch(stream, { after: 0, findEnd: async () => ({ frames: frames(3, 'stored: executor lost') }) })
    expect(await readAll(run)).to.deep.equal([frames(3), frames(3, 'stored: executor lost')])
  })

  it('pass on a failure of this reader alone, such as a slow client', async () => {
    const stream = new FedStream()
    const slow: Frames = { ...frames(3, 'too slow'), failure: 'slow_consumer' }
    stream.push(slow)
    stream.end()
    const run = watch(stream, { after: 0, findEnd: never })
    expect(await readAll(run)).to.deep.equal([slow])
  })

  it('stop at once when the reader leaves while nothing comes', async () => {
    const stream = new FedStream()
    const run = watch(stream, { after: 0, findEnd: async () => undefined })
    const waiting = run.next()
    await run.return?.()
    expect((await waiting).done).to.equal(true)
    expect(stream.returns).to.equal(1)
  })
})
