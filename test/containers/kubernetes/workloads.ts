import type { Engine } from '../engine.ts'
import { Pod } from './pod.ts'
import type { PodSpec } from './pod-spec.ts'

/** The pods of Deployments and StatefulSets. It replaces them as Kubernetes does with `maxSurge: 1, maxUnavailable: 0`. */
export class Workloads implements AsyncDisposable {
  readonly #engine: Engine
  readonly #network: string
  readonly #onChange: () => void
  readonly #specs = new Map<string, PodSpec>()
  #pods: Pod[] = []
  readonly #endings: Promise<void>[] = []
  readonly #ended: Pod[] = []
  #started = 0

  constructor(engine: Engine, network: string, onChange: () => void) {
    this.#engine = engine
    this.#network = network
    this.#onChange = onChange
  }

  /** The pods that have not been told to end. */
  podsOf(name: string): Pod[] {
    return this.#pods.filter(({ spec }) => spec.name === name)
  }

  /** The workloads of the pods that have ended. */
  get ended(): string[] {
    return this.#ended.map(({ spec }) => spec.name).toSorted()
  }

  /** Why pods were restarted or killed. */
  get faults(): string[] {
    return [...this.#ended, ...this.#pods].flatMap(({ name, faults }) => faults.map((fault) => `${name} ${fault}`))
  }

  /**
   * Starts what is new, and replaces the pods whose description has changed. Resolves when all are ready and the old ones have ended. One
   * workload is replaced after the other, since one machine cannot give all of them the CPU that they request.
   */
  async apply(specs: readonly PodSpec[], replicas: number): Promise<void> {
    const added = specs.filter(({ name }) => !this.#specs.has(name))
    const changed = specs.filter((spec) => {
      const before = this.#specs.get(spec.name)
      return before !== undefined && JSON.stringify(before) !== JSON.stringify(spec)
    })
    for (const spec of specs) this.#specs.set(spec.name, spec)
    await Promise.all(added.flatMap((spec) => Array.from({ length: replicas }, () => this.#add(spec))))
    for (const spec of changed) await this.#replace(spec)
    await Promise.all(this.#endings)
  }

  async #replace(spec: PodSpec): Promise<void> {
    for (const old of this.podsOf(spec.name)) {
      await this.#add(spec)
      this.#pods = this.#pods.filter((each) => each !== old)
      this.#endings.push(old.end().then(() => void this.#ended.push(old)))
    }
  }

  async #add(spec: PodSpec): Promise<void> {
    const name = `${this.#network}-${spec.name}-${this.#started++}`
    const pod = await Pod.start(spec, { engine: this.#engine, network: this.#network, name, onChange: this.#onChange })
    this.#pods.push(pod)
    await pod.whenReady()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#endings)
    await Promise.all(this.#pods.map((pod) => pod.discard()))
    const claims = [...this.#specs.values()].flatMap(({ volumes }) => volumes.flatMap(({ claim }) => claim ?? []))
    await this.#engine.tryDocker(['volume', 'rm', ...new Set(claims.map((claim) => `${this.#network}-${claim}`))])
  }
}
