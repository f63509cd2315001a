import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { Bench } from '../../../scripts/bench/bench.ts'
import { Client } from '../../../scripts/bench/client.ts'
import { startFlowCluster } from '../../../scripts/bench/cluster.ts'
import { openWorkCounter, totalOf, workBetween } from '../../../scripts/bench/database-calls.ts'
import { GATEWAY } from '../../../scripts/bench/dialect.ts'
import { FIGURES } from '../../../scripts/bench/figures.ts'
import { openFlowService } from '../../../scripts/bench/flow-service.ts'
import { Processes } from '../../../scripts/bench/processes.ts'
import { COMPILE_CACHE } from '../../../scripts/node-options.ts'

/** What the figures measure is started here once, and does its work once: a bench that cannot be set up is noticed before somebody needs it. */
describe('the bench', () => {
  const processes = new Processes()
  after(() => processes.killAll())
  const newBench = () => new Bench({ isQuick: true, signal: AbortSignal.timeout(50_000), processes, shared: new Map() })

  it('has a name for each figure', () => {
    const names = FIGURES.map(({ name }) => name)
    expect(new Set(names).size).to.equal(names.length)
  })

  it('starts the baseline and the product, which stream the answers of its provider', async () => {
    const bench = newBench()
    for (const gateway of [await bench.baseline(), await bench.ours()]) {
      using client = new Client(gateway, bench.signal)
      await client.stream(3)
    }
  })

  it('measures the heap of customers in a process of its own', async () => {
    const program = join(import.meta.dirname, '../../../scripts/bench/programs/idle-customers.ts')
    const { stdout } = await promisify(execFile)(process.execPath, [program, '2', '1'], {
      env: { NODE_COMPILE_CACHE: COMPILE_CACHE },
    })
    const { none, idle } = JSON.parse(stdout) as { none: number; idle: number }
    expect(Math.min(none, idle)).to.be.above(0)
  })

  it('starts a cluster that runs flows and plans, and counts what they cost the databases', async () => {
    const bench = newBench()
    await using cluster = await startFlowCluster(bench)
    using service = await openFlowService(cluster, { bench, counts: [0] })
    await using counter = await openWorkCounter(cluster)
    using client = new Client({ port: cluster.port, dialect: GATEWAY }, bench.signal)
    const before = await counter.read()
    await service.run(0)
    await service.direct()
    const plan = { steps: [{ id: 's', prompt: 'Say yes.' }] }
    const { id } = (await client.json(`${cluster.basePath}/plans/submit`, plan)) as { id: string }
    await client.readToEnd(`${cluster.basePath}/plans/${id}/events`, '"status":"done"')
    const { mongo, redis, cpuMs } = workBetween(before, await counter.read())
    expect(totalOf(mongo)).to.be.at.least(10)
    expect(totalOf(redis)).to.be.above(0)
    expect(cpuMs).to.have.all.keys('gateway', 'executor', 'worker', 'redis', 'mongod')
  })
})
