import { expect } from 'chai'
import type { Log } from '../../shared/kernel/log.ts'
import { type Closer, createShutdown } from '../../shared/kernel/shutdown.ts'

const never = () => new Promise<never>(() => {})

function setUp(closers: Closer[], deadlineMs = 10_000) {
  const lines: string[] = []
  const write = (msg: string) => void lines.push(msg)
  const log: Log = { error: write, warn: write, info: write, debug: write }
  const exited = Promise.withResolvers<number>()
  return { lines, exited: exited.promise, shutdown: createShutdown({ closers, deadlineMs, log, exit: exited.resolve }) }
}

describe('shutdown', () => {
  it('the first signal runs the closers in order, one after the other, and exits 0', async () => {
    const steps: string[] = []
    const closer = (name: string): Closer => ({
      name,
      deadlineMs: 1000,
      async close() {
        steps.push(`${name} closing`)
        await Promise.resolve()
        steps.push(`${name} closed`)
      },
    })
    const { shutdown, exited } = setUp([closer('listener'), closer('store')])
    shutdown.signal('SIGTERM')
    expect(await exited).to.equal(0)
    expect(steps).to.deep.equal(['listener closing', 'listener closed', 'store closing', 'store closed'])
  })

  it('a second signal exits 1 immediately, whatever is still closing', async () => {
    const closing = Promise.withResolvers<void>()
    const { shutdown, exited } = setUp([{ name: 'runs', deadlineMs: 1000, close: () => closing.promise }])
    shutdown.signal('SIGTERM')
    shutdown.signal('SIGINT')
    closing.resolve()
    expect(await exited).to.equal(1)
  })

  it('a closer past its deadline is abandoned, the next one still runs, and the exit code is 1', async () => {
    const steps: string[] = []
    const { shutdown, exited, lines } = setUp([
      { name: 'runs', deadlineMs: 5, close: never },
      { name: 'store', deadlineMs: 1000, close: () => steps.push('store') },
    ])
    shutdown.signal('SIGTERM')
    expect(await exited).to.equal(1)
    expect(steps).to.deep.equal(['store'])
    expect(lines).to.deep.equal(['signal', 'not closed'])
  })

  it('after a closer that throws the next one still runs', async () => {
    const steps: string[] = []
    const { shutdown, exited } = setUp([
      {
        name: 'runs',
        deadlineMs: 1000,
        close() {
          throw new Error('broken')
        },
      },
      { name: 'store', deadlineMs: 1000, close: () => steps.push('store') },
    ])
    shutdown.signal('SIGTERM')
    expect(await exited).to.equal(1)
    expect(steps).to.deep.equal(['store'])
  })

  it('the overall deadline ends the process even when a closer has more time', async () => {
    const closing = Promise.withResolvers<void>()
    const { shutdown, exited, lines } = setUp([{ name: 'runs', deadlineMs: 1000, close: () => closing.promise }], 5)
    shutdown.signal('SIGTERM')
    expect(await exited).to.equal(1)
    closing.resolve()
    expect(lines).to.include('not closed in time')
  })

  it('an uncaught exception runs the closers and exits 1', async () => {
    const steps: string[] = []
    const { shutdown, exited } = setUp([{ name: 'store', deadlineMs: 1000, close: () => steps.push('store') }])
    shutdown.crash(new Error('a bug'))
    expect(await exited).to.equal(1)
    expect(steps).to.deep.equal(['store'])
  })

  it('an exception during the shutdown changes the exit code to 1 and lets the shutdown end', async () => {
    const closing = Promise.withResolvers<void>()
    const { shutdown, exited } = setUp([{ name: 'store', deadlineMs: 1000, close: () => closing.promise }])
    shutdown.signal('SIGTERM')
    shutdown.crash(new Error('a bug'))
    closing.resolve()
    expect(await exited).to.equal(1)
  })

  it('an unhandled rejection is logged and the process continues', () => {
    const steps: string[] = []
    const { shutdown, lines } = setUp([{ name: 'store', deadlineMs: 1000, close: () => steps.push('store') }])
    shutdown.rejection(new Error('a bug in one run'))
    expect(lines).to.deep.equal(['unhandled rejection'])
    expect(steps).to.deep.equal([])
  })
})
