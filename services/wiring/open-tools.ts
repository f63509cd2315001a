import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createAgentTools } from '../../shared/agent/tools/agents/agents.ts'
import { createDreamTool } from '../../shared/agent/tools/agents/dream.ts'
import { createSkillTool, type Skill } from '../../shared/agent/tools/agents/skill.ts'
import { createExitPlanTool } from '../../shared/agent/tools/exit-plan.ts'
import { defaultScopeOf, MAX_ANSWER_BYTES } from '../../shared/agent/tools/mcp/config.ts'
import type { McpTools } from '../../shared/agent/tools/mcp/mcp.ts'
import type { Tool, ToolBox } from '../../shared/agent/tools/port.ts'
import { createBashTool } from '../../shared/agent/tools/process/bash.ts'
import { createToolRegistry, policyProblems } from '../../shared/agent/tools/registry.ts'
import { createTodoTool } from '../../shared/agent/tools/todo.ts'
import { createToolChanges } from '../../shared/agent/tools/tool-changes.ts'
import { createWebFetchTool } from '../../shared/agent/tools/web/web-fetch.ts'
import { createDeliverTool, type DeliveredFiles } from '../../shared/agent/tools/workspace/deliver.ts'
import { createFileTools } from '../../shared/agent/tools/workspace/file-tools.ts'
import { createQuota } from '../../shared/agent/tools/workspace/quota.ts'
import { createSearchTools } from '../../shared/agent/tools/workspace/search-tools.ts'
import { hasKind } from '../../shared/kernel/errors.ts'
import type { Log } from '../../shared/kernel/log.ts'
import { SYSTEM_TENANT } from '../../shared/kernel/tenant.ts'
import { ConfigError } from '../../shared/platform/config/config.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import type { Egress } from '../../shared/platform/net/port.ts'
import { createSchemaCheckers } from '../../shared/platform/schemas/checker.ts'
import type { SchemaCheckers } from '../../shared/platform/schemas/port.ts'
import { proposalProblem } from '../../shared/work/plans/plan.ts'
import { findExposedSecrets } from './secrets/exposed-secrets.ts'

type ToolSettings = Settings['tools']

/**
 * One for the whole process, because its threads are expensive to start and to keep. The threads end when they are idle, and do not keep the
 * process alive.
 */
const schemas = createSchemaCheckers()

export type OpenedTools = {
  toolBox: ToolBox
  /** Checks the inputs of MCP tools; the process uses it for its other schemas too. */
  schemas: SchemaCheckers
  close(): Promise<void>
}

/**
 * Opens the tools of D5.1, including those of the MCP servers; and `Deliver` if files are kept. Throws when a policy
 * names a tool that does not exist.
 */
export async function openTools(
  settings: ToolSettings,
  log: Log,
  store?: { files: DeliveredFiles },
): Promise<OpenedTools> {
  const egress = openEgress(settings.allowsPrivateUrls)
  const mayStartPrograms = once(() => checkSecrets(settings, log))
  const mcp = await openMcp(settings, { log, mayStartPrograms, files: store?.files })
  const tools: Tool[] = [
    ...createFileTools(createQuota({ maxBytes: settings.workspaceQuotaBytes })),
    ...createSearchTools(),
    ...(store ? [createDeliverTool(store.files)] : []),
    createWebFetchTool({ egress: egress.open }),
    createTodoTool(),
    ...createAgentTools(),
    createSkillTool(await openSkills(settings.skillsDir, log)),
    createDreamTool(),
    createExitPlanTool(proposalProblem),
    ...(settings.isBashEnabled && (await mayStartPrograms()) ? [createBashTool()] : []),
    ...mcp.tools,
  ]
  const registry = await createToolRegistry({
    tools,
    permissions: settings.toolPermissions,
    schemas: schemas.of(SYSTEM_TENANT),
  })
  const problems = [...registry.problems, ...policyProblems('PLAN_PERMISSIONS', settings.planPermissions, registry)]
  if (problems.length > 0) throw new Error(problems.join('\n'))
  for (const message of registry.leftOut) log.warn(message)
  mcp.onChange(createToolChanges(registry, log))
  const ready = mcp.listed && Promise.race([mcp.listed, sleep(LISTED_WITHIN_MS, undefined, { ref: false })])
  return {
    toolBox: { ...registry, ready, servers: mcp.servers, release: mcp.release },
    schemas,
    async close() {
      await Promise.all([mcp.close(), egress.close()])
    },
  }
}

/** The first runs of a process wait at most this long for MCP servers that are still starting; the process serves requests meanwhile. */
const LISTED_WITHIN_MS = 5_000

/** Whether no secret is readable for the programs that tools start. Logs the readable ones. */
async function checkSecrets(settings: ToolSettings, log: Log): Promise<boolean> {
  const exposed = await findExposedSecrets(settings)
  if (exposed.length > 0)
    log.error(
      `Bash and MCP servers over stdio are not offered, because the programs that they start could read secrets: ${exposed.join('; ')}. Start with scripts/start instead of npm, give secrets in the environment instead of files, and see "Secrets and programs" in deploy/README.md.`,
    )
  return exposed.length === 0
}

function once<T>(work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined
  return () => {
    result ??= work()
    return result
  }
}

/** Opens the egress at its first use: its library is large, and many processes never use it. */
function openEgress(allowPrivate: boolean) {
  let egress: Promise<Egress> | undefined
  const open = () => {
    egress ??= import('../../shared/platform/net/egress.ts').then(({ createEgress }) => createEgress({ allowPrivate }))
    return egress
  }
  return { open, close: async () => (await egress)?.close() }
}

/** The operator chose the servers, so they may be private. A call may be silent until its own timeout. */
const MCP_EGRESS = { allowPrivate: true, idleTimeoutMs: 600_000, maxBodyBytes: MAX_ANSWER_BYTES.http }

type McpNeeds = { log: Log; mayStartPrograms: () => Promise<boolean>; files: DeliveredFiles | undefined }

/** Loads the MCP client only when MCP servers are configured. */
async function openMcp(settings: ToolSettings, { log, mayStartPrograms, files }: McpNeeds): Promise<McpTools> {
  const { mcpConfig, mcpStartMs, variables, dataDir } = settings
  if (mcpConfig === undefined) return NO_MCP
  const [{ openMcpServers }, { createEgress }] = await Promise.all([
    import('../../shared/agent/tools/mcp/mcp.ts'),
    import('../../shared/platform/net/egress.ts'),
  ])
  const egress = createEgress(MCP_EGRESS)
  const { fetch } = egress
  const parts = {
    ...{ configFile: mcpConfig, variables, startTimeoutMs: mcpStartMs, fetch, log, mayStartPrograms, files, waitMs: 0 },
    folder: resolve(dataDir, 'mcp'),
    defaultScope: defaultScopeOf(settings),
    bounds: boundsOf(settings),
  } as const
  const mcp = await openMcpServers(parts).catch((cause: unknown) => {
    throw hasKind(cause, 'invalid_request') ? new ConfigError([cause.message]) : cause
  })
  return {
    ...mcp,
    async close() {
      await mcp.close()
      await egress.close()
    },
  }
}

const boundsOf = ({ mcpProcesses: max, mcpIdleMs: idleMs, mcpMemoryBytes, tenantShare }: ToolSettings) => ({
  max,
  maxPerTenant: Math.max(1, Math.floor(max * tenantShare)),
  idleMs,
  maxMemoryBytes: mcpMemoryBytes,
})

const NO_MCP: McpTools = {
  tools: [],
  onChange: () => {},
  listed: undefined,
  servers: () => [],
  release: () => {},
  close: async () => {},
}

/** Loads the reader of skills only when a folder of skills is configured. */
async function openSkills(dir: string | undefined, log: Log): Promise<Skill[]> {
  if (dir === undefined) return []
  const { loadSkills } = await import('../../shared/agent/tools/agents/load-skills.ts')
  const { skills, problems } = await loadSkills(dir)
  for (const message of problems) log.warn(message)
  return skills
}
