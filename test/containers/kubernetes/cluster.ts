import { randomBytes } from 'node:crypto'
import { ROOT } from '../../deploy/files.ts'
import { type Manifest, renderHelm, renderKustomize } from '../../deploy/kubernetes.ts'
import { until } from '../../support/until.ts'
import type { Engine } from '../engine.ts'
import { IngressController } from './ingress.ts'
import { addressOf } from './pod.ts'
import { podSpecs } from './pod-spec.ts'
import { Workloads } from './workloads.ts'

export const DEPLOYMENTS = ['gateway', 'worker', 'executor'].map((kind) => `agent-engine-${kind}`)
export const REPLICAS = 2
const OUTSIDE = 'http://outside:9100'

/** The pods of the chart and the stores of overlays/local as containers, behind nginx. `outside.ts` is the model provider and the issuer. */
export class PodCluster implements AsyncDisposable {
  readonly engine: Engine
  readonly workloads: Workloads
  readonly #image: string
  readonly #network: string
  readonly #masterKey = randomBytes(32).toString('base64')
  #ingress: IngressController | undefined
  #token = ''

  constructor(engine: Engine, image: string) {
    this.engine = engine
    this.#image = image
    this.#network = `pods-${process.pid}`
    this.workloads = new Workloads(engine, this.#network, () => this.#publish())
  }

  get url(): string {
    return `${this.#ingress?.url}/api/v1`
  }

  get headers() {
    return { authorization: `Bearer ${this.#token}` }
  }

  async startStores(): Promise<void> {
    await this.engine.docker(['network', 'create', this.#network])
    const place = ['--network', this.#network, '--network-alias', 'outside', '--volume', `${ROOT}:/repo:ro`]
    const program = [this.#image, '/repo/test/containers/outside.ts']
    await this.engine.docker(['run', '--detach', '--name', this.#outside, '--no-healthcheck', ...place, ...program])
    const stores = (await renderKustomize('overlays/local')).filter(({ kind }) => kind === 'StatefulSet')
    await this.workloads.apply(podSpecs(stores), 1)
    const address = await addressOf(this.engine, this.#outside)
    const ask = () => fetch(`http://${address}:9100/token`).catch(() => undefined)
    const answer = await until(ask, { what: 'the issuer to answer', everyMs: 100 })
    this.#token = ((await answer.json()) as { token: string }).token
  }

  /** Renders the chart with these settings, and applies it. */
  async apply(settings: Readonly<Record<string, string>> = {}): Promise<void> {
    const own = {
      OIDC_ISSUER: OUTSIDE,
      MODEL_PROVIDER: 'demo',
      ALLOW_PRIVATE_URLS: 'true',
      RATE_LIMIT_RPM: '0',
      TOOL_PERMISSIONS: '{"Write":"allow"}',
    }
    const image = { repository: this.#image, tag: 'latest' }
    const manifests = await renderHelm({ image, settings: { ...own, ...settings } })
    this.#ingress ??= await IngressController.start(this.engine, this.#network, ingressOf(manifests))
    const secret = {
      REDIS_URL: 'redis://redis:6379',
      MONGODB_URL: 'mongodb://mongo-0.mongo:27017/?replicaSet=agent-engine',
      MASTER_KEY: this.#masterKey,
      OPS_TOKEN: 'token-of-a-test',
    }
    await this.workloads.apply(podSpecs(manifests, { 'agent-engine': secret }), REPLICAS)
    await this.#ingress.whenReady()
  }

  /** Sends a request through nginx. Throws unless it succeeds. */
  async call(method: string, path: string, body?: object | FormData): Promise<unknown> {
    const isJson = body !== undefined && !(body instanceof FormData)
    const headers = { ...this.headers, ...(isJson && { 'content-type': 'application/json' }) }
    const init = { method, headers, ...(body && { body: isJson ? JSON.stringify(body) : body }) }
    const answer = await fetch(this.url + path, init)
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path} was answered ${answer.status} ${text}`)
    return JSON.parse(text)
  }

  /** Makes an instance of the tenant from `outside.ts`. */
  async addInstance(name: string): Promise<void> {
    const instance = { type: 'openai-compatible', url: `${OUTSIDE}/v1`, key: 'sk-test-0123456789' }
    await this.call('PUT', `/config/instances/${name}`, instance)
  }

  get #outside(): string {
    return `${this.#network}-outside`
  }

  #publish(): void {
    const gateways = () => this.workloads.podsOf('agent-engine-gateway').filter(({ isReady }) => isReady)
    this.#ingress?.changeEndpoints(() => gateways().map(({ ip, spec }) => `${ip}:${spec.ports['http']}`))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#ingress?.[Symbol.asyncDispose]()
    await this.workloads[Symbol.asyncDispose]()
    await this.engine.tryDocker(['rm', '--force', '--volumes', this.#outside])
    await this.engine.tryDocker(['network', 'rm', this.#network])
  }
}

function ingressOf(manifests: readonly Manifest[]): Manifest {
  const found = manifests.find(({ kind }) => kind === 'Ingress')
  if (!found) throw new Error('the chart renders no Ingress')
  return found
}
