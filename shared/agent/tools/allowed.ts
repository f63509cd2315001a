import { createPolicyRules, readRule } from './policy-rules.ts'
import type { ToolBox } from './port.ts'
import { matchesWildcard } from './wildcard.ts'

/** The rules of one run's `allowed_tools`: names, and patterns such as `Bash(git *)` (D42.1). */
type Allowed = readonly string[]

/**
 * The tools that the rules name, with only those calls that a rule allows. The policy of the tools still applies: a call that it denies is denied,
 * and one that needs a permission needs it.
 */
export function allowedOnly(toolBox: ToolBox, allowed: Allowed): ToolBox {
  const rules = createPolicyRules(new Map(allowed.map((rule) => [rule, 'allow'])))
  const isNamed = namedBy(allowed)
  return {
    get tools() {
      return toolBox.tools.filter(({ name }) => isNamed(name))
    },
    ready: toolBox.ready,
    servers: () => toolBox.servers?.() ?? [],
    find: (name) => (isNamed(name) ? toolBox.find(name) : undefined),
    problemWith: (name, input) => toolBox.problemWith(name, input),
    policyOf(name, input, isEdited) {
      const policy = toolBox.policyOf(name, input, isEdited)
      const tool = toolBox.find(name)
      // A tool that no rule names is never called itself: here another tool asks for its policy, as Grep does for Read.
      if (!tool || !isNamed(name)) return policy
      return rules.policyOf(tool, input, isEdited) === 'allow' ? policy : 'deny'
    },
  }
}

/** The same tools, but none can be called: some providers require the definitions of all tools in a history. */
export const shownOnly = (toolBox: ToolBox): ToolBox => ({ ...allowedOnly(toolBox, []), tools: toolBox.tools })

/** The first rule that matches no tool, with its place in the list; `undefined` when every rule matches one. */
export const unknownRule = ({ tools }: Pick<ToolBox, 'tools'>, allowed: Allowed) =>
  [...allowed.entries()].find(([, rule]) => !tools.some(({ name }) => namedBy([rule])(name)))

function namedBy(allowed: Allowed): (name: string) => boolean {
  const names = allowed.map((rule) => readRule(rule).name)
  return (name) => names.some((pattern) => matchesWildcard(pattern, name))
}
