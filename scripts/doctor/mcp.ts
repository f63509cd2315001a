import { defaultScopeOf, readMcpConfig, scopeOf } from '../../shared/agent/tools/mcp/config.ts'
import { type Check, type Finding, reasonOf } from './finding.ts'

/** MCP_CONFIG can be read. Says which servers several tenants or sessions share: what one of them does there, others may see. */
export const checkMcp: Check = async ({ config }) => {
  if (config.mcpConfig === undefined) return []
  const unknown: string[] = []
  try {
    const servers = await readMcpConfig(config.mcpConfig, config.variables, (text) => void unknown.push(text))
    const named = (wanted: string) =>
      servers.filter((each) => scopeOf(each, defaultScopeOf(config)) === wanted).map(({ name }) => name)
    return [
      ...unknown.map((note) => ({ note })),
      ...shared('all tenants and sessions', named('shared')),
      ...shared('the sessions of a tenant', named('tenant')),
    ]
  } catch (cause) {
    return [{ problem: reasonOf(cause), cure: 'correct the file' }]
  }
}

const shared = (by: string, names: readonly string[]): Finding[] =>
  names.length === 0
    ? []
    : [{ note: `shared by ${by}: ${names.join(', ')}. "scope" in MCP_CONFIG gives each session or tenant its own` }]
