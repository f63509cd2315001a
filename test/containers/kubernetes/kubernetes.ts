import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { FileLoad } from '../../deploy/file-load.ts'
import { type Manifest, renderHelm, renderKustomize } from '../../deploy/kubernetes.ts'
import { Load } from '../../deploy/load.ts'
import { until } from '../../support/until.ts'
import type { Engine } from '../engine.ts'
import { Backends } from './backends.ts'
import { IngressController } from './ingress.ts'
import { podSpecs } from './pod-spec.ts'
import { Workloads } from './workloads.ts'

const NETWORK = `agent-engine-pods-${process.pid}`
const REPLICAS = 2
const DEPLOYMENTS = ['gateway', 'worker', 'executor'].map((kind) => `agent-engine-${kind}`)
const FLOW = {
  model: 'm-1',
  system_prompt_template: 'Summarize.',
  input_schema: { type: 'object', properties: { text: { type: 'string' } } },
  output_schema: { type: 'object', properties: { summary: { type: 'string' } }, required: ['summary'] },
}

type Say = (line: string) => void

/** Prints a rule once it has been seen to hold. */
type Check = (rule: string, work: () => Promise<void>) => Promise<void>

/** The pods of the chart, and the stores of overlays/local, as containers of the product's image. */
class Cluster implements AsyncDisposable {
  readonly engine: Engine
  readonly backends: Backends
  readonly workloads: Workloads
  readonly #open: AsyncDisposableStack
  readonly #image: string
  readonly #masterKey = randomBytes(32).toString('base64')
  #ingress: IngressController | undefined

  private constructor(
    engine: Engine,
    image: string,
    parts: { backends: Backends; open: AsyncDisposableStack; say: Say },
  ) {
    this.engine = engine
    this.#image = image
    this.backends = parts.backends
    this.#open = parts.open
    this.workloads = this.#open.use(new Workloads(engine, NETWORK, { onChange: () => this.#publish(), say: parts.say }))
  }

  static async start(engine: Engine, image: string, say: Say): Promise<Cluster> {
    const open = new AsyncDisposableStack()
    await engine.docker(['network', 'create', NETWORK])
    open.defer(async () => void (await engine.tryDocker(['network', 'rm', NETWORK])))
    const format = '{{(index .IPAM.Config 0).Gateway}}'
    const host = (await engine.docker(['network', 'inspect', '--format', format, NETWORK])).trim()
    return new Cluster(engine, image, { backends: open.use(await Backends.start(host)), open, say })
  }

  get url(): string {
    return `${this.#ingress?.url}/api/v1`
  }

  get headers() {
    return { authorization: `Bearer ${this.backends.token}` }
  }

  async startStores(): Promise<void> {
    const manifests = (await renderKustomize('overlays/local')).filter(({ kind }) => kind === 'StatefulSet')
    await this.workloads.apply(podSpecs(manifests), 1)
  }

  /** Renders the chart with these settings, and applies it. */
  async apply(settings: Record<string, string> = {}): Promise<void> {
    const manifests = await renderHelm({
      image: { repository: this.#image, tag: 'latest' },
      settings: {
        ...{ ...this.backends.settings, ...settings },
        ...{ MODEL_PROVIDER: 'demo', ALLOW_PRIVATE_URLS: 'true', RATE_LIMIT_RPM: '0' },
        TOOL_PERMISSIONS: '{"Write":"allow"}',
      },
    })
    this.#ingress ??= this.#open.use(await IngressController.start(this.engine, NETWORK, ingressOf(manifests)))
    const urls = {
      REDIS_URL: 'redis://redis:6379',
      MONGODB_URL: 'mongodb://mongo-0.mongo:27017/?replicaSet=agent-engine',
    }
    const secret = { ...urls, MASTER_KEY: this.#masterKey, OPS_TOKEN: 'token-of-a-test' }
    await this.workloads.apply(podSpecs(manifests, { 'agent-engine': secret }), REPLICAS)
    await this.#ingress.whenReady()
  }

  async call(method: string, path: string, body?: object | FormData): Promise<unknown> {
    const isForm = body instanceof FormData
    const headers = { ...this.headers, ...(body && !isForm && { 'content-type': 'application/json' }) }
    const init = { method, headers, ...(body && { body: isForm ? body : JSON.stringify(body) }) }
    const answer = await fetch(this.url + path, init)
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path} was answered ${answer.status} ${text}`)
    return JSON.parse(text)
  }

  #publish(): void {
    this.#ingress?.changeEndpoints(() =>
      this.workloads
        .podsOf('agent-engine-gateway')
        .filter(({ isReady }) => isReady)
        .map(({ ip, spec }) => `${ip}:${spec.ports['http']}`),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#open.disposeAsync()
  }
}

function ingressOf(manifests: readonly Manifest[]): Manifest {
  const found = manifests.find(({ kind }) => kind === 'Ingress')
  if (!found) throw new Error('the chart renders no Ingress')
  return found
}

/** Runs the manifests for Kubernetes as containers of `image`. Throws at the first rule that does not hold. */
export async function runManifests(
  engine: Engine,
  image: string,
  { check, say }: { check: Check; say: Say },
): Promise<void> {
  await using cluster = await Cluster.start(engine, image, say)
  await check('overlays/local: Redis and MongoDB become ready', () => cluster.startStores())
  await check('the chart: two gateways, workers and executors become ready', () => cluster.apply())
  await check('no process is root, writes to the root folder, has a capability or can gain one', () =>
    seeRights(cluster),
  )
  await check('an upload passes through the spool of a gateway', () => upload(cluster))
  await check('a changed setting replaces every pod: no stream ends, no request is refused, no file is lost', () =>
    rollUnderLoad(cluster),
  )
  await check('a gateway that hangs gets no requests, and is started again', () => freeze(cluster))
}

async function seeRights({ engine, workloads }: Cluster): Promise<void> {
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

async function upload(cluster: Cluster): Promise<void> {
  await cluster.call('PUT', '/config/instances/speech', {
    type: 'openai-compatible',
    url: cluster.backends.speechUrl,
    key: 'sk-test-0123456789',
  })
  const form = new FormData()
  form.set('provider_instance', 'speech')
  form.set('model', 'whisper-1')
  form.set('file', new Blob([new Uint8Array(8_000_000)], { type: 'audio/wav' }), 'speech.wav')
  expect(await cluster.call('POST', '/audio/transcriptions', form)).to.deep.equal({ text: 'heard' })
}

async function rollUnderLoad(cluster: Cluster): Promise<void> {
  await cluster.call('PUT', '/config/instances/main', {
    type: 'openai-compatible',
    url: cluster.backends.modelUrl,
    key: 'sk-test-0123456789',
  })
  await cluster.call('PUT', '/flows/short', FLOW)
  await cluster.call('POST', '/flows/short/publish', {})
  const load = new Load(cluster.url, cluster.headers)
  const files = new FileLoad(cluster.url, cluster.headers)
  await load.start({ clients: 2, flow: 'short' })
  files.start({ sessions: 2, plans: 2 })
  const failures = () => [...load.failures, ...files.failures]
  const isBusy = () => (load.counts.flows > 0 && files.counts.turns > 0) || failures().length > 0
  await until(isBusy, { what: 'the clients to be answered', lastSeen: () => load.counts })

  const t = setInterval(() => {
    const f = failures()
    while (seen < f.length) console.log(new Date().toISOString().slice(11, 19), 'FAILURE', f[seen++])
  }, 100)
  let seen = 0
  await cluster.apply({ MAX_TURNS: '31' })
  clearInterval(t)
  await load.stop()
  await files.stop()

  expect(failures()).to.deep.equal([])
  expect(cluster.workloads.allFaults).to.deep.equal([])
  expect(cluster.workloads.exits).to.have.length(DEPLOYMENTS.length * REPLICAS)
  expect(Math.min(...Object.values(load.counts), files.counts.turns), JSON.stringify(load.counts)).to.be.above(10)
  expect(files.counts.plans).to.be.above(1)
}

/** Its process is stopped, and goes on when kubelet has told it to end. */
async function freeze(cluster: Cluster): Promise<void> {
  const [pod, other] = cluster.workloads.podsOf('agent-engine-gateway')
  if (!pod || !other) throw new Error('there are fewer than two gateways')
  await cluster.engine.docker(['kill', '--signal', 'STOP', pod.name])
  await until(() => !pod.isReady, { what: 'the gateway to be unready', everyMs: 50 })
  await until(() => pod.faults.length > 0, { what: 'the liveness probe to fail', withinMs: 60_000, everyMs: 100 })
  await cluster.engine.docker(['kill', '--signal', 'CONT', pod.name])
  await until(() => pod.isReady && pod.restarts === 1, {
    what: 'the gateway to be back',
    withinMs: 120_000,
    everyMs: 100,
  })
  expect(other.faults).to.deep.equal([])
  expect(await cluster.call('GET', '/config/instances')).to.be.an('object')
}
