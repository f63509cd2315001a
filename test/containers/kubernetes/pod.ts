import { until } from '../../support/until.ts'
import type { Engine } from '../engine.ts'
import type { PodSpec, Probe, Volume } from './pod-spec.ts'
import { pause, watchProbe } from './probe.ts'

const LOG_LINES = '20'

export type Place = {
  engine: Engine
  network: string
  name: string
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
    for (const volume of spec.volumes) await engine.docker(volumeArgs(spec, volume, place.name))
    await engine.docker(['run', '--detach', ...containerArgs(spec, place, await placesOfImage(engine, spec.image))])
    pod.#life = pod.#live()
    return pod
  }

  async whenReady(): Promise<void> {
    await until(() => this.isReady, {
      what: `${this.name} to be ready`,
      withinMs: 120_000,
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
    await engine.docker(['rm', '--force', this.name])
    const own = this.spec.volumes.filter(({ claim }) => !claim).map((volume) => volumeName(volume, this.name))
    if (own.length > 0) await engine.docker(['volume', 'rm', ...own])
  }

  /** Removes the container at once. */
  async discard(): Promise<void> {
    this.#isEnding = true
    await this.#place.engine.tryDocker(['rm', '--force', '--volumes', this.name])
    await this.#life.catch(() => {})
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

const volumeName = ({ name, claim }: Volume, pod: string) => claim ?? `${pod}-${name}`

/** Kubernetes gives a volume the group fsGroup, and lets it write. */
function volumeArgs(spec: PodSpec, volume: Volume, pod: string): string[] {
  const size = volume.limit ? [`size=${toDockerSize(volume.limit)}`] : []
  const options = [...size, `gid=${spec.fsGroup}`, 'mode=2777'].join(',')
  const own = ['type=tmpfs', 'device=tmpfs', `o=${options}`].flatMap((option) => ['--opt', option])
  return ['volume', 'create', ...own, volumeName(volume, pod)]
}

/** Units of Kubernetes as Docker and mount know them: both mean powers of 1,024. */
const toDockerSize = (quantity: string) => quantity.replace(/i$/, '').toLowerCase()

/**
 * What the manifests say as arguments of `docker run`. Folders that the image declares as volumes cannot be written to unless the manifests
 * mount something there: not every container runtime makes them.
 */
function containerArgs(spec: PodSpec, { name, network }: Place, places: readonly string[]): string[] {
  const mounts = spec.mounts.map(({ path, volume }) => {
    const found = spec.volumes.find((each) => each.name === volume)
    if (!found) throw new Error(`${spec.name} mounts ${volume}, which is no volume of its`)
    return `type=volume,source=${volumeName(found, name)},target=${path}`
  })
  const unmounted = places.filter((path) => !spec.mounts.some((mount) => mount.path === path))
  return [
    ...['--name', name, '--network', network, ...spec.hosts.flatMap((host) => ['--network-alias', host])],
    ...['--user', `${spec.user}:${spec.group}`, '--group-add', String(spec.fsGroup)],
    ...(spec.hasReadOnlyRoot ? ['--read-only'] : []),
    ...spec.droppedCapabilities.flatMap((capability) => ['--cap-drop', capability]),
    ...['--security-opt', 'no-new-privileges', '--no-healthcheck'],
    ...(spec.memory ? ['--memory', toDockerSize(spec.memory), '--memory-swap', toDockerSize(spec.memory)] : []),
    ...(spec.cpu ? ['--cpu-shares', String(cpuShares(spec.cpu))] : []),
    ...mounts.flatMap((mount) => ['--mount', mount]),
    ...unmounted.flatMap((path) => ['--mount', `type=tmpfs,target=${path},tmpfs-mode=0555`]),
    ...Object.entries(spec.env).flatMap(([variable, value]) => ['--env', `${variable}=${value}`]),
    ...[spec.image, ...spec.args],
  ]
}

/** 1,024 for one CPU, as kubelet sets it. */
const cpuShares = (cpu: string): number =>
  Math.round(cpu.endsWith('m') ? Number(cpu.slice(0, -1)) * 1.024 : Number(cpu) * 1_024)
