import type { JsonObject } from '../../kernel/events.ts'
import type { Policy, RuleSubject, Tool } from './port.ts'
import { matchesWildcard } from './wildcard.ts'

/**
 * Policies by rule (TOOL_PERMISSIONS, PLAN_PERMISSIONS; D1.3). A rule is a tool's name, in which `*` stands for any characters, and
 * optionally what the call acts on: `mcp__github__*`, `Bash(npm test)`.
 */
export type PolicyRules = {
  /**
   * The policy of the longest rule that matches, of equally long ones the strictest; `undefined` when none does. A call that does several
   * things is allowed by no rule that names one of them, and one that may be what a longer rule denies is asked for. `isEdited`: a person has
   * written the input, and nobody is asked again: what may be denied is then denied.
   */
  policyOf(tool: Tool, input: JsonObject, isEdited?: boolean): Policy | undefined
  /** Whether the longest rule for the tool denies it, and none says what it may act on. */
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

/** `rules` are those for the tool, the one that counts most first. */
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
