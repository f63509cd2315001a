import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../harness/seed.ts'
import type { ModelServer } from '../../support/model-server/model-server.ts'
import { call, prepare } from '../api.ts'
import { random as hex } from '../tenants/ids.ts'

/** A tenant whose runs go through an instance of its own. `keys` are all values that its secret ever had. */
export type Tenant = { name: string; headers: Record<string, string>; keys: string[] }

/** Each runner pauses for `pauseMs` after a run. */
type Options = { model: ModelServer; tenants: readonly Tenant[]; random: Random; url: string; pauseMs: number }

const RUNNERS_PER_TENANT = 3
const NEW_KEY_AT = 0.05

/** Runs of all tenants, and new values for their secrets in between. */
export class Load {
  /** Where requests go from now on. */
  url: string
  runs = 0
  /** Every key of the load contains it, so that one search finds them all. */
  readonly marker = hex(8)
  readonly failures: string[] = []
  readonly #options: Options
  readonly #loops: Promise<void>[] = []
  #isOver = false

  private constructor(options: Options) {
    this.#options = options
    this.url = options.url
  }

  static async start(options: Options): Promise<Load> {
    const load = new Load(options)
    for (const tenant of options.tenants) await load.#configure(tenant)
    for (const tenant of options.tenants) {
      for (let i = 0; i < RUNNERS_PER_TENANT; i += 1) load.#loops.push(load.#run(tenant, i))
    }
    return load
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#loops)
  }

  /** Requests at the model with a key that its tenant never had. A run names its tenant in the prompt. */
  wrongKeys(): string[] {
    return this.#options.model.requests.flatMap(({ headers, prompt }) => {
      const tenant = this.#options.tenants.find(({ name }) => prompt.startsWith(name))
      const key = (headers.authorization ?? '').slice('Bearer '.length)
      return tenant && !tenant.keys.includes(key) ? [`a run of ${tenant.name} had the key ${key || '(none)'}`] : []
    })
  }

  async #configure(tenant: Tenant): Promise<void> {
    const { headers } = tenant
    await this.#renewKey(tenant)
    const body = { type: 'openai-compatible', url: this.#options.model.url, secret: 'team' }
    await prepare(this.url, { method: 'PUT', path: '/config/instances/main', body, headers })
    const own = { type: 'openai-compatible', url: this.#options.model.url, key: `${this.marker}-own-${hex(20)}` }
    tenant.keys.push(own.key)
    await prepare(this.url, { method: 'PUT', path: '/config/instances/spare', body: own, headers })
    const routing = { main: { instance: 'main', model: 'm', fallback_instance: 'spare', fallback_model: 'm' } }
    await prepare(this.url, { method: 'PUT', path: '/config/engine', body: { routing }, headers })
  }

  async #renewKey({ headers, keys }: Tenant): Promise<void> {
    const value = `${this.marker}-${hex(20)}`
    keys.push(value)
    await prepare(this.url, { method: 'PUT', path: '/config/secrets/team', body: { value }, headers })
  }

  async #run(tenant: Tenant, runner: number): Promise<void> {
    const random = this.#options.random.fork(`${tenant.name} ${runner}`)
    while (!this.#isOver) {
      try {
        if (random.chance(NEW_KEY_AT)) await this.#renewKey(tenant)
        const request = { method: 'POST', path: '/agent/run', body: { prompt: `${tenant.name} asks` } }
        const { status, text } = await call(this.url, { ...request, headers: tenant.headers })
        this.runs += 1
        const last = [...text.matchAll(/^event: (\w+)$/gm)].at(-1)?.[1]
        if (last !== 'done') this.failures.push(`${status} ${text.slice(-200)}`)
      } catch (cause) {
        this.failures.push(String(cause instanceof Error ? (cause.cause ?? cause) : cause))
      }
      await sleep(this.#options.pauseMs)
    }
  }
}
