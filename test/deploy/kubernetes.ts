import { execFile } from 'node:child_process'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parseAllDocuments } from 'yaml'
import { type HelmVersion, renderChart } from '../../scripts/local-services/helm-chart.ts'
import { requireKubectl } from '../../scripts/local-services/kubectl.ts'
import { ROOT } from './files.ts'

/** A Kubernetes object. Its other fields depend on its kind; `checkTypes` compares them with the API. */
export type Manifest = {
  apiVersion: string
  kind: string
  metadata: { name: string; namespace?: string; annotations?: Record<string, string>; labels?: Record<string, string> }
  // oxlint-disable-next-line typescript/no-explicit-any
  spec: any
  data?: Record<string, string>
}

const run = promisify(execFile)

/** The objects that `kubectl apply --kustomize` would send for a folder below deploy/k8s. */
export async function renderKustomize(folder: string): Promise<Manifest[]> {
  const { stdout } = await run(await requireKubectl(), ['kustomize', `${ROOT}deploy/k8s/${folder}`])
  return toManifests(stdout)
}

/** The folder of the Helm chart. */
export const CHART = `${ROOT}deploy/helm/agent-engine`

/** The objects that `helm install agent-engine` would send in the namespace `agent-engine`, with these values beside the chart's own. */
export async function renderHelm(values: object = {}, version?: HelmVersion): Promise<Manifest[]> {
  const release = { chart: CHART, name: 'agent-engine', namespace: 'agent-engine', values }
  return toManifests(await renderChart({ ...release, ...(version && { version }) }))
}

const toManifests = (text: string) => parseAllDocuments(text).map((document) => document.toJS() as Manifest)

/** Checks values against the schemas of the Kubernetes API. Throws with the first problem. */
export async function checkSchemas(manifests: readonly Manifest[]): Promise<void> {
  for (const manifest of manifests) {
    const { apiVersion, kind } = manifest
    const models = (await import(`kubernetes-models/${apiVersion}/${kind}`)) as Record<string, Model>
    const model = models[kind]
    if (!model) throw new Error(`kubernetes-models has no ${apiVersion} ${kind}`)
    new model(manifest).validate()
  }
}

type Model = new (data: Manifest) => { validate(): void }

/** Checks for unknown fields, which the schemas allow, with the types of the Kubernetes API. Returns the compiler's messages. */
export async function checkTypes(manifests: readonly Manifest[]): Promise<string> {
  const dir = join(ROOT, 'node_modules/.cache', `kubernetes-types-${process.pid}`)
  const lines = manifests.map((manifest, i) => {
    const { apiVersion, kind } = manifest
    const type = `import('kubernetes-models/${apiVersion}/${kind}').I${kind}`
    return `export const object${i}: ${type} = ${JSON.stringify(manifest)}`
  })
  await mkdir(dir, { recursive: true })
  try {
    await writeFile(join(dir, 'manifests.ts'), lines.join('\n'))
    const flags = ['--ignoreConfig', '--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--types', '']
    await run(process.execPath, [`${ROOT}node_modules/typescript/bin/tsc`, ...flags, join(dir, 'manifests.ts')])
    return ''
  } catch (cause) {
    if (cause instanceof Error && 'stdout' in cause && cause.stdout) return String(cause.stdout)
    throw cause
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}
