import type { Engine } from '../engine.ts'
import { Pod } from './pod.ts'
import type { PodSpec } from './pod-spec.ts'

/** The pods of Deployments and StatefulSets, which it replaces as Kubernetes does with `maxSurge: 1, maxUnavailable: 0`. */
export class Workloads implements AsyncDisposable {
  readonly faults: string[] = []
  readonly exits: { name: string; code: number }[] = []
  readonly #engine: Engine
  readonly #network: string
  readonly #onChange: () => void
  readonly #say: (line: string) => void
  readonly #pods = new Map<string, Pod[]>()
  readonly #specs = new Map<string, PodSpec>()
  readonly #endings: Promise<void>[] = []
  #started = 0

  constructor(engine: Engine, network: string, told: { onChange: () => void; say: (line: string) => void }) {
    this.#engine = engine
    this.#network = network
    this.#onChange = told.onChange
    this.#say = told.say
  }

  podsOf(name: string): readonly Pod[] {
    return this.#pods.get(name) ?? []
  }

  /** Starts what is new, and replaces the pods whose description has changed. Resolves when all are ready and the old ones have ended. */
  async apply(specs: readonly PodSpec[], replicas: number): Promise<void> {
    await Promise.all(specs.map((spec) => this.#applyOne(spec, replicas)))
    await Promise.all(this.#endings)
  }

  async #applyOne(spec: PodSpec, replicas: number): Promise<void> {
    const before = this.#specs.get(spec.name)
    this.#specs.set(spec.name, spec)
    if (before === undefined) {
      await Promise.all(Array.from({ length: replicas }, () => this.#add(spec)))
      return
    }
    if (JSON.stringify(before) === JSON.stringify(spec)) return
    for (const old of [...this.podsOf(spec.name)]) {
      await this.#add(spec)
      this.#endings.push(this.#remove(old))
    }
  }

  async #add(spec: PodSpec): Promise<void> {
    const name = `${spec.name}-${this.#started++}`
    const place = { engine: this.#engine, network: this.#network, name, onChange: this.#onChange }
    const pod = await Pod.start(spec, place)
    this.#pods.set(spec.name, [...this.podsOf(spec.name), pod])
    await pod.whenReady()
    this.#say(`  ${name} is ready`)
  }

  async #remove(pod: Pod): Promise<void> {
    this.#pods.set(
      pod.spec.name,
      this.podsOf(pod.spec.name).filter((each) => each !== pod),
    )
    this.#say(`  ${pod.name} is to end`)
    this.exits.push({ name: pod.name, code: await pod.end() })
    this.#say(`  ${pod.name} has ended`)
    this.faults.push(...pod.faults.map((fault) => `${pod.name} ${fault}`))
  }

  /** The faults of the pods that have ended, and of those that run. */
  get allFaults(): string[] {
    const running = [...this.#pods.values()].flat()
    return [...this.faults, ...running.flatMap((pod) => pod.faults.map((fault) => `${pod.name} ${fault}`))]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#endings)
    await Promise.all([...this.#pods.values()].flat().map((pod) => pod.discard()))
  }
}
