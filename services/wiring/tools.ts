import type { Config } from '../../shared/config/config.ts'
import type { Log } from '../../shared/log.ts'
import type { Egress } from '../../shared/net/port.ts'
import { planProblem } from '../../shared/plans/plan.ts'
import { createAgentTools } from '../../shared/tools/agents/agents.ts'
import { createDreamTool } from '../../shared/tools/agents/dream.ts'
import { createSkillTool, type Skill } from '../../shared/tools/agents/skill.ts'
import { createExitPlanTool } from '../../shared/tools/exit-plan.ts'
import type { Tool, ToolBox } from '../../shared/tools/port.ts'
import { createBashTool } from '../../shared/tools/process/bash.ts'
import { createToolRegistry } from '../../shared/tools/registry.ts'
import { createTodoTool } from '../../shared/tools/todo.ts'
import { createWebFetchTool } from '../../shared/tools/web/web-fetch.ts'
import { createFileTools } from '../../shared/tools/workspace/file-tools.ts'
import { createSearchTools } from '../../shared/tools/workspace/search-tools.ts'

type ToolConfig = Pick<Config, 'toolPermissions' | 'isBashEnabled' | 'mcpConfig' | 'skillsDir' | 'allowsPrivateUrls'>

/** The tools of D5.1 that this process offers, those of its MCP servers included. Throws when TOOL_PERMISSIONS names none of them. */
export async function openTools(config: ToolConfig, log: Log): Promise<{ toolBox: ToolBox; close(): Promise<void> }> {
  const egress = openEgress(config.allowsPrivateUrls)
  const mcp = await openMcp(config.mcpConfig, log)
  const tools: Tool[] = [
    ...createFileTools(),
    ...createSearchTools(),
    createWebFetchTool({ egress: egress.open }),
    createTodoTool(),
    ...createAgentTools(),
    createSkillTool(await openSkills(config.skillsDir, log)),
    createDreamTool(),
    createExitPlanTool(planProblem),
    ...(config.isBashEnabled ? [createBashTool()] : []),
    ...mcp.tools,
  ]
  const registry = createToolRegistry({ tools, permissions: config.toolPermissions })
  if (registry.problems.length > 0) throw new Error(registry.problems.join('\n'))
  for (const line of registry.leftOut) log.warn(line)
  return {
    toolBox: registry,
    async close() {
      await Promise.all([mcp.close(), egress.close()])
    },
  }
}

/** The way out is opened when something first goes out: its library is large, and most processes never use it. */
function openEgress(allowPrivate: boolean) {
  let egress: Promise<Egress> | undefined
  const open = () => {
    egress ??= import('../../shared/net/egress.ts').then(({ createEgress }) => createEgress({ allowPrivate }))
    return egress
  }
  return { open, close: async () => (await egress)?.close() }
}

/** The MCP client is loaded only where there is a server to talk to. */
async function openMcp(configFile: string | undefined, log: Log) {
  if (configFile === undefined) return { tools: [], close: async () => {} }
  const { openMcpServers } = await import('../../shared/tools/mcp/mcp.ts')
  return openMcpServers({ configFile, onProblem: (line: string) => log.warn(line) })
}

/** What reads skills is loaded only where there are some. */
async function openSkills(dir: string | undefined, log: Log): Promise<Skill[]> {
  if (dir === undefined) return []
  const { loadSkills } = await import('../../shared/tools/agents/load-skills.ts')
  const { skills, problems } = await loadSkills(dir)
  for (const line of problems) log.warn(line)
  return skills
}
