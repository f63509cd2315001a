import { expect } from 'chai'
import { succeed, type Tool } from '../../shared/agent/tools/port.ts'
import { CursorStream } from '../../shared/cluster/journal/cursor-stream.ts'
import { Lease } from '../../shared/cluster/members/lease.ts'
import { now } from '../../shared/cluster/members/moment.ts'
import { createMemoryPermissionStore } from '../../shared/cluster/permissions/memory-store.ts'
import { newId } from '../../shared/kernel/ids.ts'
import { NO_METRICS } from '../../shared/kernel/metrics.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import { createDemoWorker } from '../support/demo-worker.ts'

/** A worker whose lease has expired, and a run of it that is about to start a tool. */
async function setUp() {
  const lease = new Lease()
  const starts: string[] = []
  const counted: string[] = []
  const refused = Promise.withResolvers<void>()
  const tool: Tool = {
    name: 'Act',
    description: 'acts',
    inputSchema: {},
    defaultPolicy: 'allow',
    describe: () => 'Act wants to run',
    async run() {
      starts.push('Act')
      return succeed('done')
    },
  }
  const count = (name: string) => {
    counted.push(name)
    if (name === 'fence_refusals') refused.resolve()
  }
  const worker = createDemoWorker(
    createMemoryPermissionStore(),
    {},
    {
      fence: lease,
      metrics: { ...NO_METRICS, count },
      toolBox: { tools: [tool], find: () => tool, policyOf: () => 'allow', problemWith: async () => undefined },
    },
  )
  const runId = newId('run')
  void worker.inbox.startRun(DEFAULT_TENANT, runId, { prompt: '/tool Act {}' })
  void worker.inbox.acceptRun(DEFAULT_TENANT, runId)
  const reading = textOf(new CursorStream(worker.inbox.followRun(DEFAULT_TENANT, runId, 0)))
  await refused.promise
  const refusals = () => counted.filter((name) => name === 'fence_refusals').length
  return { lease, worker, starts, reading, refusals }
}

async function textOf(frames: CursorStream): Promise<string> {
  let text = ''
  for await (const chunk of frames) text += Buffer.from(chunk.text)
  return text
}

describe('a worker that may have been replaced', () => {
  it('P2: starts a tool only after its lease is renewed', async () => {
    const { lease, starts, reading, refusals } = await setUp()
    expect(starts).to.deep.equal([])
    lease.renewed(now())
    expect(await reading)
      .to.include('"output":"done"')
      .and.include('event: done')
    expect(starts).to.deep.equal(['Act'])
    expect(refusals()).to.equal(1)
  })

  it('P2: starts no tool after it was evicted, and its runs end with worker_lost', async () => {
    const { lease, worker, starts, reading } = await setUp()
    worker.abortAll()
    lease.renewed(now()) // It has joined again, under another epoch.
    expect(await reading).to.match(/event: error\ndata: .*"code":"worker_lost"/)
    expect(starts).to.deep.equal([])
  })
})
