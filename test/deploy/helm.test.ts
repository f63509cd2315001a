import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { parse } from 'yaml'
import { type HelmVersion, lintChart } from '../../scripts/local-services/helm-chart.ts'
import { SECRET_SETTINGS } from '../../shared/platform/config/secret-settings.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { LONGEST_STOP_SECS, ROOT, SETTINGS } from './files.ts'
import { CHART, checkSchemas, checkTypes, type Manifest, renderHelm, renderKustomize } from './kubernetes.ts'

const run = promisify(execFile)
const VERSIONS: HelmVersion[] = ['v3', 'v4']

describe('deploy/helm/agent-engine', () => {
  const folder = useTempFolder()

  it('has no finding of `helm lint --strict` but the missing icon', async () => {
    for (const version of VERSIONS) {
      const { messages } = JSON.parse(await lintChart(CHART, version)) as { messages: { message: string }[] }
      expect(messages.map(({ message }) => message)).to.deep.equal(['icon is recommended'])
    }
  })

  it('has the version of the product, which is also the tag of the image', async () => {
    const { version } = JSON.parse(await readFile(`${ROOT}package.json`, 'utf8')) as { version: string }
    expect(parse(await readFile(`${CHART}/Chart.yaml`, 'utf8'))).to.include({ version, appVersion: version })
    for (const { spec } of (await renderHelm()).filter(({ kind }) => kind === 'Deployment'))
      expect(spec.template.spec.containers[0].image).to.equal(`registry.example.com/agent-engine:${version}`)
  })

  it('renders what deploy/k8s/base holds: `npm run manifests` changes no file', async () => {
    await run(process.execPath, [`${ROOT}scripts/render-manifests.ts`, folder.path])
    for (const name of ['agent-engine.yaml', 'settings.env'])
      expect(await readFile(`${folder.path}/${name}`, 'utf8'), `run npm run manifests, for ${name}`).to.equal(
        await readFile(`${ROOT}deploy/k8s/base/${name}`, 'utf8'),
      )
  })

  for (const version of VERSIONS)
    it(`renders overlays/production with its default values, but for names (Helm ${version})`, async () => {
      expect(comparable(await renderHelm({}, version))).to.deep.equal(
        comparable(await renderKustomize('overlays/production')),
      )
    })

  it('renders overlays/no-shared-disk with a bucket, but for names', async () => {
    const workspaces = { bucket: 's3://agent-engine-workspaces/production', region: 'eu-central-1' }
    expect(comparable(await renderHelm({ workspaces }))).to.deep.equal(
      comparable(await renderKustomize('overlays/no-shared-disk')),
    )
  })
})

/**
 * Objects by kind and name, without what each tool does in its own way: the beginning of names, how a changed setting rolls the pods, and
 * the order of volumes.
 */
function comparable(manifests: readonly Manifest[]): Record<string, unknown> {
  const text = JSON.stringify(manifests)
    .replaceAll(/"agent-engine-(gateway|worker|executor|workspaces|deny-all|public-api|ops|way-out)"/g, '"$1"')
    .replaceAll(/"agent-engine-[a-z0-9]{10}"/g, '"agent-engine"')
    .replaceAll(/"checksum\/settings":"\w{64}",/g, '')
  const all = JSON.parse(text) as Manifest[]
  for (const { kind, spec } of all)
    if (kind === 'Deployment') spec.template.spec.volumes.sort((a: Named, b: Named) => (a.name < b.name ? -1 : 1))
  return Object.fromEntries(all.map((manifest) => [`${manifest.kind} ${manifest.metadata.name}`, manifest]))
}

type Named = { name: string }

/** Other values than the chart's own, each of which changes something. */
const VALUES = {
  image: { repository: 'images.internal/agents', tag: '1.2.3', pullPolicy: 'Always', pullSecrets: ['pull'] },
  settings: { DURABILITY: 'runs', RUNS_PER_WORKER: 1_000_000, ENABLE_BASH: true },
  existingSecret: 'keys',
  redis: { port: 6380, urlSecret: { name: 'redis-operator', key: 'uri' } },
  mongodb: { port: 27018, urlSecret: { name: 'mongo-operator', key: '' } },
  drainSecs: 120,
  gateway: { replicas: 4, resources: { limits: { memory: '2Gi' } } },
  autoscaling: { enabled: false },
  workspaces: { existingClaim: 'nfs' },
  spoolSize: '5Gi',
  ingress: { className: 'internal', host: 'agents.internal', tlsSecret: '', annotations: { 'example.com/owner': 'a' } },
  console: true,
  networkPolicy: {
    ingressNamespace: 'edge',
    monitoringNamespace: 'metrics',
    egress: [{ to: [{ ipBlock: { cidr: '10.1.2.3/32' } }], ports: [{ protocol: 'TCP', port: 8000 }] }],
  },
  volumes: [{ name: 'flows', configMap: { name: 'flows' } }],
  volumeMounts: [{ name: 'flows', mountPath: '/flows' }],
  nodeSelector: { pool: 'agents' },
  tolerations: [{ key: 'agents', operator: 'Exists' }],
  priorityClassName: 'high',
}

describe('deploy/helm/agent-engine with other values', () => {
  let manifests: Manifest[]
  let text: string
  before(async () => {
    manifests = await renderHelm(VALUES)
    text = JSON.stringify(manifests)
  })
  const all = (kind: string) => manifests.filter((manifest) => manifest.kind === kind)
  const podsOf = (kind: string) => all('Deployment').filter(({ metadata }) => metadata.name.endsWith(kind))[0]?.spec

  it('fits the schemas and the types of the Kubernetes API', async () => {
    await checkSchemas(manifests)
    expect(await checkTypes(manifests)).to.equal('')
  })

  it('writes settings as the processes read them, the host and the console included', () => {
    const { data = {} } = all('ConfigMap')[0] ?? {}
    expect(data).to.include({ DURABILITY: 'runs', RUNS_PER_WORKER: '1000000', ENABLE_BASH: 'true', DRAIN_SECS: '120' })
    expect(data).to.include({ ALLOWED_HOSTS: 'agents.internal', CONSOLE: 'true', OIDC_AUDIENCE: 'agent-engine' })
    for (const [name, value] of Object.entries(data))
      expect(() => SETTINGS.get(name)?.parse(value), name).to.not.throw()
  })

  it('gives the processes the Secret, and the addresses of operators from Secrets of theirs', () => {
    for (const { spec } of all('Deployment')) {
      const [container] = spec.template.spec.containers
      expect(container.envFrom[1]).to.deep.equal({ secretRef: { name: 'keys' } })
      expect(container.env).to.deep.equal([
        { name: 'MONGODB_URL', valueFrom: { secretKeyRef: { name: 'mongo-operator', key: 'MONGODB_URL' } } },
        { name: 'REDIS_URL', valueFrom: { secretKeyRef: { name: 'redis-operator', key: 'uri' } } },
      ])
    }
    expect(text).to.include('{"protocol":"TCP","port":6380},{"protocol":"TCP","port":27018}')
  })

  it('lets the grace periods follow drainSecs', () => {
    const more = VALUES.drainSecs - Number(SETTINGS.get('DRAIN_SECS')?.fallback)
    for (const kind of ['gateway', 'worker', 'executor'])
      expect(podsOf(kind).template.spec.terminationGracePeriodSeconds).to.be.at.least(
        more + LONGEST_STOP_SECS + (kind === 'gateway' ? 5 : 0),
      )
  })

  it('counts the pods itself without autoscaling', () => {
    expect(all('HorizontalPodAutoscaler')).to.deep.equal([])
    expect(['gateway', 'worker', 'executor'].map((kind) => podsOf(kind).replicas)).to.deep.equal([4, 3, 2])
  })

  it('mounts the claim that there is, and claims none', () => {
    expect(all('PersistentVolumeClaim')).to.deep.equal([])
    const claim = { name: 'workspaces', persistentVolumeClaim: { claimName: 'nfs' } }
    expect(podsOf('worker').template.spec.volumes).to.deep.include(claim)
    expect(podsOf('gateway').template.spec.volumes).to.deep.include({ name: 'spool', emptyDir: { sizeLimit: '5Gi' } })
  })

  it('publishes the API and the console at the host, without TLS where there is no certificate', () => {
    const [ingress] = all('Ingress')
    expect(ingress?.spec).to.include({ ingressClassName: 'internal' }).and.not.have.property('tls')
    expect(ingress?.spec.rules[0].host).to.equal('agents.internal')
    const paths = ingress?.spec.rules[0].http.paths.map(({ path }: { path: string }) => path)
    expect(paths).to.deep.equal(['/api/v1', '/console'])
    expect(ingress?.metadata.annotations).to.include({ 'example.com/owner': 'a' })
  })

  it('gives the pods their image, nodes and volumes, and the network policies their namespaces and rules', () => {
    for (const { spec } of all('Deployment')) {
      const pod = spec.template.spec
      expect(pod.containers[0]).to.include({ image: 'images.internal/agents:1.2.3', imagePullPolicy: 'Always' })
      expect(pod.containers[0].volumeMounts).to.deep.include(VALUES.volumeMounts[0])
      expect(pod.volumes).to.deep.include(VALUES.volumes[0])
      expect(pod).to.deep.include({ nodeSelector: VALUES.nodeSelector, tolerations: VALUES.tolerations })
      expect(pod).to.deep.include({ priorityClassName: 'high', imagePullSecrets: [{ name: 'pull' }] })
    }
    for (const part of ['edge', 'metrics', '10.1.2.3/32']) expect(text).to.include(`"${part}"`)
  })

  it('leaves out the ingress, the network policies and the second metrics where they are switched off', async () => {
    const off = {
      ingress: { enabled: false },
      networkPolicy: { enabled: false },
      autoscaling: { customMetrics: false },
    }
    const kinds = (await renderHelm(off)).map(({ kind, spec }) => `${kind} ${spec?.metrics?.length ?? ''}`.trim())
    expect(kinds).to.not.include('Ingress').and.not.include('NetworkPolicy')
    expect(kinds.filter((kind) => kind === 'HorizontalPodAutoscaler 1')).to.have.length(3)
  })
})

describe('deploy/helm/agent-engine with wrong values', () => {
  const WRONG: [values: object, message: string][] = [
    [{ gatway: { replicas: 2 } }, "additional properties 'gatway' not allowed"],
    [{ gateway: { replicas: 'two' } }, "'/gateway/replicas': got string, want integer"],
    [{ worker: { replicas: 50 } }, 'worker.replicas is above worker.maxReplicas'],
    [{ existingSecret: '' }, "'/existingSecret'"],
    [{ ingress: { host: 'https://agents.example.com' } }, "'/ingress/host'"],
    [{ workspaces: { bucket: 'agents' } }, "'/workspaces/bucket'"],
    [{ workspaces: { bucket: 's3://agents', existingClaim: 'nfs' } }, 'set one of them'],
    [{ settings: { max_turns: '3' } }, "'max_turns' does not match"],
    [{ settings: { MODEL_PRICES: { a: 1 } } }, "'/settings/MODEL_PRICES': got object"],
    [{ settings: { DRAIN_SECS: '60' } }, 'settings.DRAIN_SECS: set drainSecs'],
  ]
  for (const [values, message] of WRONG)
    it(`names the fault of ${JSON.stringify(values)}`, async () => {
      expect(await renderHelm(values).then(JSON.stringify, String)).to.include(message)
    })

  it('refuses each setting that is a secret, and names the Secret', async () => {
    const shown = ['HTTPS_PROXY', 'MODEL_BASE_URL', 'FALLBACK_MODEL_BASE_URL'] // Only a password or a query in it is secret.
    const secrets = SECRET_SETTINGS.map(({ name }) => name).filter((name) => !shown.includes(name))
    const settings = Object.fromEntries(secrets.map((name) => [name, 'x']))
    expect(await renderHelm({ settings }).then(JSON.stringify, String)).to.include(
      `settings has secrets: put ${secrets.toSorted().join(', ')} into the Secret agent-engine`,
    )
    expect(secrets).to.include.members(['REDIS_URL', 'MASTER_KEY_PREVIOUS', 'ANTHROPIC_API_KEY'])
  })
})
