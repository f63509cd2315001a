import { until } from '../../support/until.ts'
import type { Engine } from '../engine.ts'
import { containerArgs, type Names, volumeArgs, volumeName } from './container-args.ts'
import type { PodSpec, Probe } from './pod-spec.ts'
import { pause, watchProbe } from './probe.ts'

const LOG_LINES = '20'
const READY_MS = 120_000

export type Place = Names & {
  engine: Engine
  /** The pod has become ready or unready, or has begun to end. */
  onChange: () => void
}

/** A pod as a container of the engine: confined, probed, restarted and ended as kubelet would. */
export class Pod {
  readonly name: string
  readonly spec: PodSpec
  ip = ''
  isReady = false
  restarts = 0
  /** Why it was restarted or killed. */
  readonly faults: string[] = []
  readonly #place: Place
  #isEnding = false
  #life: Promise<number> = Promise.resolve(0)

  private constructor(spec: PodSpec, place: Place) {
    this.spec = spec
    this.#place = place
    this.name = place.name
  }

  static async start(spec: PodSpec, place: Place): Promise<Pod> {
    const pod = new Pod(spec, place)
    const { engine } = place
    for (const volume of spec.volumes) await engine.docker(volumeArgs(spec, volume, place))
    await engine.docker(['run', '--detach', ...containerArgs(spec, place, await placesOfImage(engine, spec.image))])
    pod.#life = pod.#live()
    return pod
  }

  async whenReady(): Promise<void> {
    await until(() => this.isReady, {
      what: `${this.name} to be ready`,
      withinMs: READY_MS,
      everyMs: 50,
      lastSeen: () => this.faults.join('\n'),
    })
  }

  /** Ends the pod: preStop, SIGTERM, and after the grace period SIGKILL. Then removes the container and its volumes. */
  async end(): Promise<void> {
    const { engine, onChange } = this.#place
    this.#isEnding = true
    this.isReady = false
    onChange()
    const grace = new AbortController()
    const killed = pause(this.spec.graceSecs, grace.signal).then(async () => {
      if (grace.signal.aborted) return
      this.faults.push(`was killed after ${this.spec.graceSecs} s: ${await this.#log()}`)
      await engine.tryDocker(['kill', this.name])
    })
    await pause(this.spec.preStopSecs)
    await engine.tryDocker(['kill', '--signal', 'SIGTERM', this.name])
    const code = await this.#life
    grace.abort()
    await killed
    if (code !== 0) this.faults.push(`ended with ${code}: ${await this.#log()}`)
    await this.#remove()
  }

  /** Removes the container at once. */
  async discard(): Promise<void> {
    this.#isEnding = true
    await this.#remove()
    await this.#life.catch(() => {})
  }

  async #remove(): Promise<void> {
    const { engine } = this.#place
    await engine.tryDocker(['rm', '--force', '--volumes', this.name])
    const own = this.spec.volumes.filter(({ claim }) => claim === undefined)
    await engine.tryDocker(['volume', 'rm', ...own.map((volume) => volumeName(volume, this.#place))])
  }

  /** The container until it is to end. One that ends by itself, or fails its liveness probe, is started again. */
  async #live(): Promise<number> {
    const { engine, onChange } = this.#place
    for (;;) {
      this.ip = await addressOf(engine, this.name)
      const stopped = new AbortController()
      const probing = this.#probe(stopped.signal)
      const code = Number((await engine.tryDocker(['wait', this.name])).stdout.trim())
      stopped.abort()
      await probing
      this.isReady = false
      onChange()
      if (this.#isEnding) return code
      this.restarts++
      this.faults.push(`was restarted after exit code ${code}: ${await this.#log()}`)
      await engine.docker(['start', this.name])
    }
  }

  async #probe(signal: AbortSignal): Promise<void> {
    const { startup, readiness, liveness } = this.spec
    if (startup && !(await this.#first(startup, signal))) return
    await Promise.all([this.#followReadiness(readiness, signal), liveness && this.#followLiveness(liveness, signal)])
  }

  async #first(probe: Probe, signal: AbortSignal): Promise<boolean> {
    for await (const passes of this.#watch(probe, signal)) {
      if (!passes) await this.#restart('startup')
      return passes
    }
    return false
  }

  async #followReadiness(probe: Probe | undefined, signal: AbortSignal): Promise<void> {
    const set = (isReady: boolean) => {
      this.isReady = isReady && !this.#isEnding
      this.#place.onChange()
    }
    if (!probe) return set(true)
    for await (const passes of this.#watch(probe, signal)) set(passes)
  }

  async #followLiveness(probe: Probe, signal: AbortSignal): Promise<void> {
    for await (const passes of this.#watch(probe, signal)) if (!passes) await this.#restart('liveness')
  }

  /** Ends the container, which #live starts again. */
  async #restart(probe: string): Promise<void> {
    if (this.#isEnding) return
    this.faults.push(`failed its ${probe} probe: ${await this.#log()}`)
    await this.#place.engine.tryDocker(['stop', '--time', String(this.spec.graceSecs), this.name])
  }

  #watch(probe: Probe, signal: AbortSignal) {
    return watchProbe(probe, { engine: this.#place.engine, name: this.name, ip: this.ip }, signal)
  }

  async #log(): Promise<string> {
    const { stdout, stderr } = await this.#place.engine.tryDocker(['logs', '--tail', LOG_LINES, this.name])
    return `${stdout}${stderr}`
  }
}

/** The address of a container that is in one network. */
export async function addressOf(engine: Engine, name: string): Promise<string> {
  const format = '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}'
  return (await engine.docker(['inspect', '--format', format, name])).trim()
}

/** The folders that an image declares as volumes. */
async function placesOfImage(engine: Engine, image: string): Promise<string[]> {
  const volumes = await engine.docker(['image', 'inspect', '--format', '{{json .Config.Volumes}}', image])
  return Object.keys((JSON.parse(volumes) ?? {}) as object)
}
