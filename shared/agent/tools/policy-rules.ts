import type { JsonObject } from '../../kernel/events.ts'
import type { Policy, RuleSubject, Tool } from './port.ts'
import { matchesWildcard } from './wildcard.ts'

/**
 * Policies by rule (TOOL_PERMISSIONS, PLAN_PERMISSIONS; D1.3). A rule is a tool's name, in which `*` matches any characters, and
 * optionally the subject of the call: `mcp__github__*`, `Bash(npm test)`.
 */
export type PolicyRules = {
  /**
   * The policy of the longest matching rule, among equally long ones the strictest; `undefined` when none matches. If a call does several
   * things, a rule for one of them does not allow it. If a longer rule may deny the call, a person is asked. `isEdited`: a person has written
   * the input and is not asked again, so a call that a rule may deny is denied.
   */
  policyOf(tool: Tool, input: JsonObject, isEdited?: boolean): Policy | undefined
  /** Whether the longest rule for the tool denies it, and no rule for it has a subject. */
  denies(tool: Pick<Tool, 'name'>): boolean
}

const STRICTNESS: Record<Policy, number> = { allow: 0, ask: 1, client: 2, deny: 3 }

export const isStricter = (one: Policy, other: Policy): boolean => STRICTNESS[one] > STRICTNESS[other]

export function createPolicyRules(policies: ReadonlyMap<string, Policy>): PolicyRules {
  const rules = [...policies].map(([text, policy]) => ({ ...readRule(text), length: text.length, policy }))
  rules.sort((a, b) => b.length - a.length || STRICTNESS[b.policy] - STRICTNESS[a.policy])
  return {
    denies(tool) {
      const named = rules.filter(({ name }) => matchesWildcard(name, tool.name))
      return named[0]?.policy === 'deny' && named.every(({ subject }) => subject === undefined)
    },
    policyOf(tool, input, isEdited = false) {
      const named = rules.filter(({ name }) => matchesWildcard(name, tool.name))
      const hasSubjects = named.some(({ subject }) => subject !== undefined)
      const decided = decide(named, hasSubjects ? tool.ruleSubject?.(input) : undefined)
      return isEdited && decided.mayBeDenied ? 'deny' : decided.policy
    },
  }
}

/** A rule as its parts; `subject` is `undefined` for one without brackets. */
export function readRule(text: string): { name: string; subject: string | undefined } {
  const open = text.indexOf('(')
  if (open < 0 || !text.endsWith(')')) return { name: text, subject: undefined }
  return { name: text.slice(0, open), subject: text.slice(open + 1, -1) }
}

type Rule = { subject: string | undefined; policy: Policy }

type Decided = { policy: Policy | undefined; mayBeDenied: boolean }

/** `rules` are those for the tool, by falling precedence. */
function decide(rules: readonly Rule[], subject: RuleSubject | undefined): Decided {
  let least: Policy = 'allow'
  let mayBeDenied = false
  for (const { subject: named, policy } of rules) {
    const isWhole = named === undefined || subject?.isOnly(named)
    if (isWhole) return { policy: isStricter(least, policy) ? least : policy, mayBeDenied }
    const isPart = subject?.includes(named)
    if (isPart && policy === 'deny') return { policy, mayBeDenied }
    if (policy === 'deny' && subject && isPart === undefined) mayBeDenied = true
    const atLeast = policy === 'deny' ? 'ask' : policy
    if (subject && isPart !== false && isStricter(atLeast, least)) least = atLeast
  }
  return { policy: least === 'allow' ? undefined : least, mayBeDenied }
}
