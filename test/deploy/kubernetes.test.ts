import { existsSync } from 'node:fs'
import { expect } from 'chai'
import { COUNTERS, GAUGES } from '../../shared/kernel/metrics.ts'
import { FIELDS } from '../../shared/platform/config/fields.ts'
import { podSpecs } from '../containers/kubernetes/pod-spec.ts'
import { LONGEST_STOP_SECS, ROOT, SETTINGS } from './files.ts'
import { checkSchemas, checkTypes, type Manifest, renderKustomize } from './kubernetes.ts'

const FOLDERS = ['overlays/production', 'overlays/local']

/** Values that an administrator puts into the Secret of the production overlay. */
const IN_SECRET = ['MONGODB_URL', 'REDIS_URL']

for (const folder of FOLDERS)
  describe(`deploy/k8s/${folder}`, () => {
    let manifests: Manifest[]
    before(async () => {
      manifests = await renderKustomize(folder)
    })

    const all = (kind: string) => manifests.filter((manifest) => manifest.kind === kind)
    const processes = () =>
      all('Deployment').map(({ metadata, spec }) => ({ role: metadata.name, spec, pod: spec.template.spec }))
    const selects = (selector: Record<string, string>, labels: Record<string, string>) =>
      Object.entries(selector).every(([key, value]) => labels[key] === value)

    it('fits the schemas and the types of the Kubernetes API', async () => {
      await checkSchemas(manifests)
      expect(await checkTypes(manifests)).to.equal('')
    })

    it('runs gateways, workers and executors, and is in one namespace', () => {
      expect(
        processes()
          .map(({ role }) => role)
          .toSorted(),
      ).to.deep.equal(['executor', 'gateway', 'worker'])
      for (const { role, pod } of processes()) {
        expect(pod.containers[0].args).to.deep.equal([`services/${role}/main.ts`])
        expect(existsSync(ROOT + pod.containers[0].args[0])).to.equal(true)
      }
      for (const { kind, metadata } of manifests)
        if (kind !== 'Namespace') expect(metadata.namespace, metadata.name).to.equal('agent-engine')
    })

    it('gives each process the time to drain: preStop, DRAIN_SECS and the closing fit into the grace period', () => {
      const [settings] = all('ConfigMap')
      expect(settings?.data?.['DRAIN_SECS']).to.equal(FIELDS.drainMs.fallback)
      for (const { role, pod } of processes()) {
        const preStop = pod.containers[0].lifecycle?.preStop.sleep.seconds ?? 0
        expect(pod.terminationGracePeriodSeconds, role).to.be.at.least(preStop + LONGEST_STOP_SECS)
        if (role === 'gateway') expect(preStop).to.be.at.least(2)
      }
    })

    it('probes the ops listener, whose port the container declares', () => {
      for (const { role, pod } of processes()) {
        const [container] = pod.containers
        const paths = ['startupProbe', 'readinessProbe', 'livenessProbe'].map((probe) => container[probe].httpGet)
        expect(paths.map(({ path }: { path: string }) => path)).to.deep.equal(['/livez', '/readyz', '/livez'])
        const named = Object.fromEntries(container.ports.map(({ name, containerPort }: never) => [name, containerPort]))
        expect(named.ops, role).to.equal(Number(all('ConfigMap')[0]?.data?.['OPS_PORT']))
        if (role === 'gateway') expect(named.http).to.equal(Number(all('ConfigMap')[0]?.data?.['PORT']))
      }
    })

    it('holds only settings that exist, and refers to secrets without containing any', () => {
      for (const [name, value] of Object.entries(all('ConfigMap')[0]?.data ?? {})) {
        expect(SETTINGS.get(name)?.secrets, `${name} is a setting and no secret`).to.equal(undefined)
        expect(() => SETTINGS.get(name)?.parse(value), name).to.not.throw()
        expect(SETTINGS.has(name), name).to.equal(true)
      }
      for (const { pod } of processes()) {
        expect(pod.containers[0].envFrom).to.deep.equal([
          { configMapRef: { name: all('ConfigMap')[0]?.metadata.name } },
          { secretRef: { name: 'agent-engine' } },
        ])
        expect(pod.containers[0].env).to.equal(undefined)
      }
      const secrets = all('Secret') as (Manifest & { stringData?: Record<string, string> })[]
      expect(secrets.flatMap(({ stringData = {} }) => Object.keys(stringData))).to.deep.equal(
        folder.endsWith('local') ? IN_SECRET : [],
      )
    })

    it('holds nothing about pods that `npm run deploy:test` would overlook, and no reference to what is not there', () => {
      const specs = podSpecs(manifests, { 'agent-engine': {} }).filter(({ args }) => args[0]?.startsWith('services/'))
      expect(specs.map(({ name }) => name).toSorted()).to.deep.equal(['executor', 'gateway', 'worker'])
      for (const { name, startup, readiness, liveness, memory } of specs)
        expect([startup, readiness, liveness, memory], name).to.not.include(undefined)
    })

    it('runs the product without rights: not as root, on a read-only file system, without capabilities and API token', () => {
      for (const { role, pod } of processes()) {
        expect(pod.automountServiceAccountToken, role).to.equal(false)
        expect(pod.securityContext).to.include({ runAsNonRoot: true, runAsUser: 1000 })
        expect(pod.containers[0].securityContext).to.deep.equal({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        })
      }
    })

    it('selects with every service, disruption budget and network policy pods that exist, and leaves one pod of a kind running', () => {
      const templates = [...all('Deployment'), ...all('StatefulSet')].map(({ spec }) => spec.template.metadata.labels)
      const matching = (labels: Record<string, string> = {}) => templates.filter((own) => selects(labels, own))
      for (const { metadata, spec } of all('Service')) expect(matching(spec.selector), metadata.name).to.have.length(1)
      for (const { role, spec } of processes()) {
        expect(selects(spec.selector.matchLabels, spec.template.metadata.labels)).to.equal(true)
        const [budget] = all('PodDisruptionBudget').filter(({ metadata }) => metadata.name === role)
        expect(budget?.spec.maxUnavailable, role).to.equal(1)
        expect(matching(budget?.spec.selector.matchLabels)).to.have.length(1)
        const [term] = spec.template.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution
        expect(matching(term.podAffinityTerm.labelSelector.matchLabels), role).to.have.length(1)
      }
      const roles = templates.map((labels) => labels['app.kubernetes.io/component'])
      for (const { metadata, spec } of all('NetworkPolicy')) {
        expect(matching(spec.podSelector.matchLabels), metadata.name).not.to.deep.equal([])
        for (const { values } of spec.podSelector.matchExpressions ?? []) expect(roles).to.include.members(values)
      }
    })

    it('denies all traffic that no policy lists: the ops port is for Prometheus only, and private addresses offer Redis and MongoDB only', () => {
      const policies = Object.fromEntries(all('NetworkPolicy').map(({ metadata, spec }) => [metadata.name, spec]))
      expect(policies['deny-all'].policyTypes).to.deep.equal(['Ingress', 'Egress'])
      for (const { spec } of all('Deployment'))
        expect(selects(policies['deny-all'].podSelector.matchLabels, spec.template.metadata.labels)).to.equal(true)
      expect(policies['ops'].ingress[0].ports).to.deep.equal([{ protocol: 'TCP', port: 'ops' }])
      const open = policies['way-out'].egress.filter(({ to }: { to: { ipBlock?: { cidr: string } }[] }) =>
        to.some(({ ipBlock }) => ipBlock?.cidr === '0.0.0.0/0'),
      )
      expect(open).to.have.length(1)
      expect(open[0].ports).to.deep.equal([{ protocol: 'TCP', port: 443 }])
      expect(open[0].to[0].ipBlock.except).to.include.members(['10.0.0.0/8', '169.254.0.0/16', '192.168.0.0/16'])
    })

    it('passes event streams unbuffered through the ingress, and sends no POST twice', () => {
      const [ingress] = all('Ingress')
      const prefix = 'nginx.ingress.kubernetes.io'
      expect(ingress?.metadata.annotations).to.include({
        [`${prefix}/proxy-buffering`]: 'off',
        [`${prefix}/proxy-request-buffering`]: 'off',
        [`${prefix}/proxy-next-upstream`]: 'error timeout',
      })
      const [path] = ingress?.spec.rules[0].http.paths ?? []
      const [service] = all('Service').filter(({ metadata }) => metadata.name === path.backend.service.name)
      expect(service?.spec.ports.map(({ name }: { name: string }) => name)).to.include(path.backend.service.port.name)
    })

    it('scales each kind on its CPU and on metrics that /metrics shows', () => {
      const known = [...Object.keys(COUNTERS).map((name) => `${name}_total`), ...Object.keys(GAUGES)]
      expect(all('HorizontalPodAutoscaler')).to.have.length(3)
      for (const { spec } of all('HorizontalPodAutoscaler')) {
        expect(processes().map(({ role }) => role)).to.include(spec.scaleTargetRef.name)
        expect(spec.metrics[0].resource.name).to.equal('cpu')
        const own = spec.metrics
          .slice(1)
          .map((metric: never) => metric['pods']?.['metric'] ?? metric['external']?.['metric'])
        expect(own).to.have.length(folder.endsWith('production') ? 1 : 0)
        for (const { name } of own) expect(known).to.include(String(name).replace(/^agent_engine_/, ''))
      }
    })
  })

describe('deploy/k8s/overlays/no-shared-disk', () => {
  it('claims no volume, names the bucket, and differs from production in nothing else', async () => {
    const [own, production] = await Promise.all(
      ['no-shared-disk', 'production'].map((each) => renderKustomize(`overlays/${each}`)),
    )
    const kindsOf = (manifests: Manifest[] = []) =>
      manifests.filter(({ kind }) => kind !== 'ConfigMap').map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    expect(kindsOf(own)).to.deep.equal(
      kindsOf(production).filter((each) => each !== 'PersistentVolumeClaim workspaces'),
    )
    await checkSchemas(own ?? [])
    const find = (of: string) => own?.find(({ kind, metadata }) => `${kind} ${metadata.name}` === of)
    for (const role of ['worker', 'executor']) {
      const { volumes } = find(`Deployment ${role}`)?.spec.template.spec ?? {}
      expect(volumes).to.deep.include({ name: 'workspaces', emptyDir: { sizeLimit: '20Gi' } })
    }
    const { data = {} } = own?.find(({ kind }) => kind === 'ConfigMap') ?? {}
    for (const name of ['WORKSPACE_STORE', 'WORKSPACE_STORE_REGION'])
      expect(() => SETTINGS.get(name)?.parse(data[name] ?? ''), name).to.not.throw()
    expect(data['WORKSPACE_STORE']).to.match(/^s3:/)
  })
})

describe('deploy/k8s', () => {
  it('rolls the pods when a setting changes: the ConfigMap has another name then, to which they refer', async () => {
    const names = await Promise.all(
      FOLDERS.map(async (folder) => {
        const manifests = await renderKustomize(folder)
        return manifests.find(({ kind }) => kind === 'ConfigMap')?.metadata.name
      }),
    )
    for (const name of names) expect(name).to.match(/^agent-engine-\w{10}$/)
    expect(names[0]).not.to.equal(names[1])
  })
})

describe('the check of Kubernetes manifests', () => {
  it('refuses a field of a pod that no container would get, and a Secret that is not there', async () => {
    const manifests = await renderKustomize('overlays/production')
    expect(() => podSpecs(manifests)).to.throw('executor refers to agent-engine, which is not among the secrets')
    for (const { kind, spec } of manifests) if (kind === 'Deployment') spec.template.spec.hostNetwork = true
    expect(() => podSpecs(manifests, { 'agent-engine': {} })).to.throw('does not know hostNetwork of executor')
  })

  it('finds a wrong type, a missing field and an unknown field', async () => {
    const good: Manifest = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: {}, spec: undefined }
    expect(await checkTypes([good])).to.equal('')
    expect(await checkTypes([{ ...good, data: { a: 1 as never } }])).to.include('not assignable')
    const pods = { kind: 'Deployment', apiVersion: 'apps/v1', metadata: { name: 'a' } }
    const wrong = { ...pods, spec: { selector: {}, template: {}, replica: 2 } }
    expect(await checkTypes([wrong])).to.include('replica')
    const failure = await checkSchemas([{ ...pods, spec: { selector: {} } }]).catch(String)
    expect(failure).to.include('template')
  })
})
