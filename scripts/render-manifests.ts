import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { ensureHelm } from './local-services/helm.ts'
import { renderChart } from './local-services/helm-chart.ts'

// `npm run manifests` renders the chart to deploy/k8s/base, for those who use kustomize: as the release `agent-engine`, without a prefix of the
// names. `npm run manifests -- FOLDER` writes to another folder.

const AT = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url))
const HEADER = '# Rendered from deploy/helm/agent-engine by `npm run manifests`. Change the chart, not this file.\n'
const folder = process.argv[2] ?? AT('deploy/k8s/base')

await ensureHelm((line) => console.error(line))
const release = { chart: AT('deploy/helm/agent-engine'), name: 'agent-engine', namespace: 'agent-engine' }
const manifests = (await renderChart({ ...release, values: { namePrefix: '' } }))
  .split(/^---\n# Source: .*\n/m)
  .filter((manifest) => manifest.trim() !== '')
const isSettings = (manifest: string) => /^kind: ConfigMap$/m.test(manifest)

// kustomize sets the namespace. It also makes the ConfigMap: its name then changes with its content, which rolls the pods as the annotation does
// with Helm.
const others = manifests.filter((manifest) => !isSettings(manifest)).join('---\n')
const left = others.replaceAll(/^(  namespace| *checksum\/settings): .*\n/gm, '')
await writeFile(`${folder}/agent-engine.yaml`, HEADER + left)
const { data } = parse(manifests.find(isSettings) ?? '') as { data: Record<string, string> }
const lines = Object.entries(data).map(([name, value]) => `${name}=${value}\n`)
await writeFile(`${folder}/settings.env`, HEADER + lines.join(''))
