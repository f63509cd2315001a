import type { Manifest } from '../../deploy/kubernetes.ts'

/** A check of a probe, with Kubernetes' defaults filled in. */
export type Probe = {
  check: { path: string; port: number } | { command: string[] }
  delaySecs: number
  periodSecs: number
  timeoutSecs: number
  /** Failures in a row that count. */
  failures: number
}

/** `claim` names what pods share. Without it each pod has its own. */
export type Volume = { name: string; limit: string | undefined; claim: string | undefined }

/** What a Deployment or a StatefulSet says about its pods. Each has one container. */
export type PodSpec = {
  name: string
  /** The names under which other pods reach the first one. */
  hosts: string[]
  image: string
  args: string[]
  env: Record<string, string>
  ports: Record<string, number>
  user: number
  group: number
  fsGroup: number
  hasReadOnlyRoot: boolean
  droppedCapabilities: string[]
  memory: string | undefined
  cpu: string | undefined
  volumes: Volume[]
  mounts: { path: string; volume: string }[]
  startup: Probe | undefined
  readiness: Probe | undefined
  liveness: Probe | undefined
  preStopSecs: number
  graceSecs: number
}

/** The data of the ConfigMaps and Secrets, by name. */
type Sources = { configMaps: Record<string, Record<string, string>>; secrets: Record<string, Record<string, string>> }

// oxlint-disable-next-line typescript/no-explicit-any
type Fields = any

/** What has no meaning for one machine: where pods run, who may read the API, and how many there are. */
const WITHOUT_EFFECT = {
  workload: ['strategy', 'replicas', 'selector', 'serviceName', 'volumeClaimTemplates'],
  pod: ['serviceAccountName', 'automountServiceAccountToken', 'affinity', 'topologySpreadConstraints'],
  container: ['imagePullPolicy'],
}

/** The pods of the manifests. `secrets` are those that the manifests refer to. Throws for a field that a runner of these would overlook. */
export function podSpecs(manifests: readonly Manifest[], secrets: Sources['secrets'] = {}): PodSpec[] {
  const ofKind = (kind: string) => manifests.filter((manifest) => manifest.kind === kind)
  const dataOf = (kind: string, field: 'data' | 'stringData') =>
    Object.fromEntries(ofKind(kind).map((manifest) => [manifest.metadata.name, (manifest as Fields)[field] ?? {}]))
  const sources = {
    configMaps: dataOf('ConfigMap', 'data'),
    secrets: { ...dataOf('Secret', 'stringData'), ...secrets },
  }
  return [...ofKind('StatefulSet'), ...ofKind('Deployment')].map((workload) => toSpec(workload, sources))
}

function toSpec({ kind, metadata: { name }, spec }: Manifest, sources: Sources): PodSpec {
  onlyKnown(spec, ['template', ...WITHOUT_EFFECT.workload], name)
  const { spec: pod } = spec.template
  const known = ['containers', 'volumes', 'securityContext', 'terminationGracePeriodSeconds', 'enableServiceLinks']
  onlyKnown(pod, [...known, ...WITHOUT_EFFECT.pod], name)
  onlyKnown(
    pod.securityContext,
    ['runAsNonRoot', 'runAsUser', 'runAsGroup', 'fsGroup', 'fsGroupChangePolicy', 'seccompProfile'],
    name,
  )
  if (pod.containers.length !== 1) throw new Error(`${name} has ${pod.containers.length} containers`)
  const { runAsUser: user, runAsGroup: group, fsGroup } = pod.securityContext
  return {
    name,
    hosts: kind === 'StatefulSet' ? [spec.serviceName, `${name}-0.${spec.serviceName}`] : [],
    ...{ user, group, fsGroup },
    volumes: [
      ...(pod.volumes ?? []),
      ...(spec.volumeClaimTemplates ?? []).map(({ metadata }: Fields) => ({ ...metadata, emptyDir: {} })),
    ].map(toVolume),
    graceSecs: pod.terminationGracePeriodSeconds ?? 30,
    ...ofContainer(pod.containers[0], sources),
  }
}

function ofContainer(container: Fields, sources: Sources) {
  const { name, securityContext, resources = {}, ports = [], lifecycle } = container
  const probes = ['startupProbe', 'readinessProbe', 'livenessProbe']
  const known = [
    'name',
    'image',
    'args',
    'env',
    'envFrom',
    'ports',
    'lifecycle',
    'resources',
    'securityContext',
    'volumeMounts',
  ]
  onlyKnown(container, [...known, ...probes, ...WITHOUT_EFFECT.container], name)
  onlyKnown(securityContext, ['allowPrivilegeEscalation', 'readOnlyRootFilesystem', 'capabilities'], name)
  onlyKnown(lifecycle ?? { preStop: { sleep: { seconds: 0 } } }, ['preStop'], name)
  if (securityContext.allowPrivilegeEscalation !== false) throw new Error(`${name} may gain privileges`)
  const named: Record<string, number> = Object.fromEntries(ports.map((port: Fields) => [port.name, port.containerPort]))
  const [startup, readiness, liveness] = probes.map((probe) => toProbe(container[probe], named))
  return {
    image: container.image as string,
    args: (container.args ?? []) as string[],
    env: environmentOf(container, sources),
    ports: named,
    hasReadOnlyRoot: securityContext.readOnlyRootFilesystem === true,
    droppedCapabilities: securityContext.capabilities.drop as string[],
    memory: resources.limits?.memory as string | undefined,
    cpu: resources.requests?.cpu as string | undefined,
    mounts: (container.volumeMounts ?? []).map((mount: Fields) => ({ path: mount.mountPath, volume: mount.name })),
    ...{ startup, readiness, liveness },
    preStopSecs: (lifecycle?.preStop.sleep.seconds ?? 0) as number,
  }
}

/** Throws for a ConfigMap or a Secret that is missing: kubelet does not start such a container. */
function environmentOf({ name, envFrom = [], env = [] }: Fields, sources: Sources): Record<string, string> {
  const find = (kind: 'configMaps' | 'secrets', source: string) => {
    const data = sources[kind][source]
    if (data === undefined) throw new Error(`${name} refers to ${source}, which is not among the ${kind}`)
    return data
  }
  return Object.assign(
    {},
    ...envFrom.map((source: Fields) =>
      source.configMapRef ? find('configMaps', source.configMapRef.name) : find('secrets', source.secretRef.name),
    ),
    ...env.map((variable: Fields) => {
      const { name: secret, key } = variable.valueFrom.secretKeyRef
      return { [variable.name]: find('secrets', secret)[key] }
    }),
  )
}

function toProbe(probe: Fields, ports: Record<string, number>): Probe | undefined {
  if (probe === undefined) return undefined
  const known = ['httpGet', 'exec', 'initialDelaySeconds', 'periodSeconds', 'timeoutSeconds', 'failureThreshold']
  onlyKnown(probe, known, 'a probe')
  const { httpGet, exec } = probe
  return {
    check: exec ? { command: exec.command } : { path: httpGet.path, port: ports[httpGet.port] ?? Number(httpGet.port) },
    delaySecs: probe.initialDelaySeconds ?? 0,
    periodSecs: probe.periodSeconds ?? 10,
    timeoutSecs: probe.timeoutSeconds ?? 1,
    failures: probe.failureThreshold ?? 3,
  }
}

function toVolume(volume: Fields): Volume {
  onlyKnown(volume, ['name', 'emptyDir', 'persistentVolumeClaim'], 'a volume')
  const { name, emptyDir, persistentVolumeClaim: claim } = volume
  return { name, limit: emptyDir?.sizeLimit, claim: claim?.claimName }
}

function onlyKnown(fields: object, known: readonly string[], where: string): void {
  const other = Object.keys(fields).filter((field) => !known.includes(field))
  if (other.length > 0) throw new Error(`the runner of pods does not know ${other.join(', ')} of ${where}`)
}
