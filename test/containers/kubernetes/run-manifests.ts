import { expect } from 'chai'
import { FileLoad } from '../../deploy/file-load.ts'
import { Load } from '../../deploy/load.ts'
import { until } from '../../support/until.ts'
import type { Engine } from '../engine.ts'
import { DEPLOYMENTS, PodCluster, REPLICAS } from './cluster.ts'

const FLOW = {
  model: 'm-1',
  system_prompt_template: 'Summarize.',
  input_schema: { type: 'object', properties: { text: { type: 'string' } } },
  output_schema: { type: 'object', properties: { summary: { type: 'string' } }, required: ['summary'] },
}

/** Runs a part and prints how it went. */
type Report = (promise: string, run: () => Promise<void>) => Promise<unknown>

/** Runs what the Helm chart renders as containers of the image `agent-engine`, as kubelet and the controllers of Kubernetes would. */
export async function runManifests(engine: Engine, report: Report): Promise<void> {
  await using cluster = new PodCluster(engine, 'agent-engine')
  await report('kubernetes: the stores of overlays/local become ready', () => cluster.startStores())
  await report('kubernetes: the gateways, workers and executors of the chart become ready', () => cluster.apply())
  await report('kubernetes: no process is root, writes to the root folder, or has or gains a capability', () =>
    seeRights(cluster),
  )
  await report('kubernetes: an upload passes through the spool of a gateway', () => upload(cluster))
  await report(
    'kubernetes: a changed setting replaces every pod, and no stream ends, no request is refused, no file is lost',
    () => rollUnderLoad(cluster),
  )
  await report('kubernetes: a gateway that hangs gets no requests, and is started again', () => stopGateway(cluster))
}

async function seeRights({ engine, workloads }: PodCluster): Promise<void> {
  for (const { name } of DEPLOYMENTS.flatMap((each) => workloads.podsOf(each))) {
    const status = await engine.docker(['exec', name, 'cat', '/proc/1/status'])
    expect(status)
      .to.match(/^Uid:\s1000\s1000\s/m)
      .and.match(/^NoNewPrivs:\s1$/m)
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
      expect(status).to.match(new RegExp(`^${set}:\\s0+$`, 'm'))
    const write = await engine.tryDocker(['exec', name, 'sh', '-c', 'touch /app/a || touch /a'])
    expect(write.stderr).to.include('Read-only file system')
  }
}

async function upload(cluster: PodCluster): Promise<void> {
  await cluster.addInstance('speech')
  const form = new FormData()
  form.set('provider_instance', 'speech')
  form.set('model', 'whisper-1')
  form.set('file', new Blob([new Uint8Array(8_000_000)], { type: 'audio/wav' }), 'speech.wav')
  expect(await cluster.call('POST', '/audio/transcriptions', form)).to.deep.equal({ text: 'spoken' })
}

async function rollUnderLoad(cluster: PodCluster): Promise<void> {
  await cluster.addInstance('main')
  await cluster.call('PUT', '/flows/short', FLOW)
  await cluster.call('POST', '/flows/short/publish', {})
  const load = new Load(cluster.url, cluster.headers)
  const files = new FileLoad(cluster.url, cluster.headers)
  await load.start({ clients: 2, flow: 'short' })
  files.start({ sessions: 2, plans: 2 })
  const failures = () => [...load.failures, ...files.failures]
  const isBusy = () => (load.counts.flows > 0 && files.counts.turns > 0) || failures().length > 0
  await until(isBusy, { what: 'the clients to be answered', lastSeen: () => load.counts })

  await cluster.apply({ MAX_TURNS: '31' })
  await load.stop()
  await files.stop()

  expect(failures()).to.deep.equal([])
  expect(cluster.workloads.faults).to.deep.equal([])
  const replaced = DEPLOYMENTS.flatMap((name) => Array<string>(REPLICAS).fill(name))
  expect(cluster.workloads.ended).to.deep.equal(replaced.toSorted())
  const { turns, plans } = files.counts
  expect(Math.min(...Object.values(load.counts), turns), JSON.stringify(load.counts)).to.be.above(10)
  expect(plans).to.be.above(1)
}

/** The stopped process goes on when it is told to end: the kernel would only kill it after the grace period. */
async function stopGateway(cluster: PodCluster): Promise<void> {
  const [pod, other] = cluster.workloads.podsOf('agent-engine-gateway')
  if (!pod || !other) throw new Error('there are fewer than two gateways')
  const signal = (name: string) => cluster.engine.docker(['kill', '--signal', name, pod.name])
  await signal('STOP')
  await until(() => !pod.isReady, { what: 'the gateway to be unready', everyMs: 50 })
  await until(() => pod.faults.length > 0, { what: 'the liveness probe to fail', withinMs: 60_000, everyMs: 100 })
  await signal('CONT')
  const isBack = () => pod.isReady && pod.restarts === 1
  await until(isBack, { what: 'the gateway to be back', withinMs: 120_000, everyMs: 100 })
  expect(other.faults).to.deep.equal([])
  expect(await cluster.call('GET', '/config/instances')).to.be.an('object')
}
