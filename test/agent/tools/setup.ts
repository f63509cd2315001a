import { readFileSync } from 'node:fs'
import type { SubAgents, Tool, ToolContext, ToolOutcome } from '../../../shared/agent/tools/port.ts'
import type { JsonObject } from '../../../shared/kernel/events.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { makeTempFolder } from '../../support/temp-folder.ts'

let folders = new AsyncDisposableStack()

/** Creates a folder for one test; `afterEach(removeFolders)` removes it. */
export async function makeFolder(): Promise<string> {
  return folders.use(await makeTempFolder()).path
}

export async function removeFolders(): Promise<void> {
  await folders.disposeAsync()
  folders = new AsyncDisposableStack()
}

/** Sub-agents for tests of tools that start none. */
export const NO_AGENTS: SubAgents = {
  depth: 0,
  refusal: () => undefined,
  run: async () => ({ status: 'failed', result: '', error: 'this test has no sub-agents' }),
}

export const contextOf = (workspace: string, fields: Partial<ToolContext> = {}): ToolContext => ({
  owner: { tenant: DEFAULT_TENANT, scope: workspace },
  workspace,
  signal: new AbortController().signal,
  assertMayAct: () => {},
  report: () => {},
  policyOf: () => 'allow',
  ask: async () => ({ action: 'cancel' }),
  agents: NO_AGENTS,
  ...fields,
})

export type Caller = (name: string, input: JsonObject, fields?: Partial<ToolContext>) => Promise<ToolOutcome>

/** Returns a function that calls the tools by name in one workspace. */
export const callerOf =
  (tools: readonly Tool[], workspace: string): Caller =>
  (name, input, fields) => {
    const tool = tools.find((candidate) => candidate.name === name)
    if (!tool) throw new Error(`no tool ${name}`)
    return tool.run(input, contextOf(workspace, fields))
  }

/** Whether the process is running. A zombie is not. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && (cause.code === 'ESRCH' || cause.code === 'ENOENT')) return false
    throw cause
  }
}
