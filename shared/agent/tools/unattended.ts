import { createPolicyRules } from './policy-rules.ts'
import type { Policy, ToolBox } from './port.ts'

/** The tools that change only the workspace's own files (D7.4). */
const WORKSPACE_TOOLS: ReadonlySet<string> = new Set(['Write', 'Edit'])

/**
 * The same tools for runs in which nobody can be asked: a tool with the policy `ask` follows `policies` (PLAN_PERMISSIONS), and
 * without an entry only the workspace's own files may be changed (D7.4). An entry `ask` denies. An entry can restrict a tool whose
 * policy is `allow`, and never lifts a `deny`.
 */
export function unattended(toolBox: ToolBox, policies: ReadonlyMap<string, Policy>): ToolBox {
  const rules = createPolicyRules(policies)
  return {
    get tools() {
      return toolBox.tools
    },
    ready: toolBox.ready,
    servers: () => toolBox.servers?.() ?? [],
    find: (name) => toolBox.find(name),
    problemWith: (name, input) => toolBox.problemWith(name, input),
    policyOf(name, input, isEdited) {
      const tool = toolBox.find(name)
      const policy = toolBox.policyOf(name, input, isEdited)
      if (policy === 'deny' || policy === 'client' || !tool || tool.alwaysAsks) return 'deny'
      const usual = policy === 'allow' || WORKSPACE_TOOLS.has(name) ? 'allow' : 'deny'
      return (rules.policyOf(tool, input) ?? usual) === 'allow' ? 'allow' : 'deny'
    },
  }
}

/** Only the named tools. */
export function onlyNamed(toolBox: ToolBox, names: readonly string[]): ToolBox {
  const named = new Set(names)
  return {
    get tools() {
      return toolBox.tools.filter(({ name }) => named.has(name))
    },
    ready: toolBox.ready,
    servers: () => toolBox.servers?.() ?? [],
    find: (name) => (named.has(name) ? toolBox.find(name) : undefined),
    policyOf: (...call) => toolBox.policyOf(...call),
    problemWith: (name, input) => toolBox.problemWith(name, input),
  }
}
