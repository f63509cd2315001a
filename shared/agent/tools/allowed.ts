import { createPolicyRules, readRule } from './policy-rules.ts'
import type { ToolBox } from './port.ts'
import { matchesWildcard } from './wildcard.ts'

/** The rules of one run's `allowed_tools`: names, and patterns such as `Bash(git *)` (D42.1). */
type Allowed = readonly string[]

/**
 * The tools that the rules name, with only those calls that a rule allows. The policy of the tools still applies: a call that it denies, or asks for,
 * is denied or asked for.
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
      // A tool that is not named is not called: another one asks what it may reach, as Grep does for Read.
      if (!tool || !isNamed(name)) return policy
      return rules.policyOf(tool, input, isEdited) === 'allow' ? policy : 'deny'
    },
  }
}

/** The same tools, of which none can be called: a history with their calls needs their definitions at some providers. */
export const shownOnly = (toolBox: ToolBox): ToolBox => ({ ...allowedOnly(toolBox, []), tools: toolBox.tools })

/** The first rule that names no tool, with its place in the list; `undefined` when each names one. */
export const unknownRule = ({ tools }: Pick<ToolBox, 'tools'>, allowed: Allowed) =>
  [...allowed.entries()].find(([, rule]) => !tools.some(({ name }) => namedBy([rule])(name)))

function namedBy(allowed: Allowed): (name: string) => boolean {
  const names = allowed.map((rule) => readRule(rule).name)
  return (name) => names.some((pattern) => matchesWildcard(pattern, name))
}
