import type { JsonObject } from '../events.ts'
import type { Policy, RuleSubject, Tool } from './port.ts'
import { matchesWildcard } from './wildcard.ts'

/**
 * Policies by rule (TOOL_PERMISSIONS, PLAN_PERMISSIONS; D1.3). A rule is a tool's name, in which `*` stands for any characters, and
 * optionally what the call acts on: `mcp__github__*`, `Bash(git *)`.
 */
export type PolicyRules = {
  /** The policy of the longest rule that matches, of equally long ones the strictest; `undefined` when none does. */
  policyOf(tool: Tool, input: JsonObject): Policy | undefined
}

const STRICTNESS: Record<Policy, number> = { allow: 0, ask: 1, deny: 2 }

export function createPolicyRules(policies: ReadonlyMap<string, Policy>): PolicyRules {
  const rules = [...policies].map(([text, policy]) => ({ ...readRule(text), length: text.length, policy }))
  rules.sort((a, b) => b.length - a.length || STRICTNESS[b.policy] - STRICTNESS[a.policy])
  return {
    policyOf(tool, input) {
      const named = rules.filter(({ name }) => matchesWildcard(name, tool.name))
      const hasSubjects = named.some(({ subject }) => subject !== undefined)
      const subject = hasSubjects ? tool.ruleSubject?.(input) : undefined
      return named.find((rule) => rule.subject === undefined || matchesSubject(rule.subject, rule.policy, subject))
        ?.policy
    },
  }
}

/** A rule as its parts; `subject` is `undefined` for one without brackets. */
export function readRule(text: string): { name: string; subject: string | undefined } {
  const open = text.indexOf('(')
  if (open < 0 || !text.endsWith(')')) return { name: text, subject: undefined }
  return { name: text.slice(0, open), subject: text.slice(open + 1, -1) }
}

/** A call that does several things is allowed by no rule that names one of them, and denied by each rule that does. */
function matchesSubject(pattern: string, policy: Policy, subject: RuleSubject | undefined): boolean {
  if (!subject) return false
  const { text, parts } = subject
  if (policy === 'allow') return parts.length <= 1 && matchesWildcard(pattern, text)
  return [text, ...parts].some((part) => matchesWildcard(pattern, part))
}
