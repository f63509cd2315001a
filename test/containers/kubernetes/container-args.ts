import type { PodSpec, Volume } from './pod-spec.ts'

/** The names of a pod's container and of the network that it is in. */
export type Names = { name: string; network: string }

/** What pods share has one name in the network, and the rest is the pod's own. */
export const volumeName = ({ name, claim }: Volume, names: Names): string =>
  claim === undefined ? `${names.name}-${name}` : `${names.network}-${claim}`

/** Makes a volume with the group fsGroup, which may write to it, as kubelet does. */
export function volumeArgs(spec: PodSpec, volume: Volume, names: Names): string[] {
  const size = volume.limit ? [`size=${toDockerSize(volume.limit)}`] : []
  const options = [...size, `gid=${spec.fsGroup}`, 'mode=2777'].join(',')
  const own = ['type=tmpfs', 'device=tmpfs', `o=${options}`].flatMap((option) => ['--opt', option])
  return ['volume', 'create', ...own, volumeName(volume, names)]
}

/** Units of Kubernetes as Docker and mount know them: both mean powers of 1,024. */
const toDockerSize = (quantity: string) => quantity.replace(/i$/, '').toLowerCase()

/**
 * What the manifests say as arguments of `docker run`. Folders that the image declares as volumes cannot be written to unless the manifests
 * mount something there: not every container runtime makes them.
 */
export function containerArgs(spec: PodSpec, names: Names, places: readonly string[]): string[] {
  const { name, network } = names
  const mounts = spec.mounts.map(({ path, volume }) => {
    const found = spec.volumes.find((each) => each.name === volume)
    if (!found) throw new Error(`${spec.name} mounts ${volume}, which is no volume of its`)
    return `type=volume,source=${volumeName(found, names)},target=${path}`
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
