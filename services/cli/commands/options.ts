import { type Command, InvalidArgumentError, Option } from 'commander'
import { usageError } from '../exit-codes.ts'
import { type Approval, parseRule, type Rule } from '../follow/approval.ts'

export function wholeNumber(text: string): number {
  if (/^[1-9]\d{0,9}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a whole number from 1 on.')
}

const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A time as the API takes it, from a time or from an age such as `7d`. */
export function sinceOf(text: string | undefined, now = Date.now()): string | undefined {
  if (text === undefined) return undefined
  const [, count, unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? []
  const at = count === undefined ? Date.parse(text) : now - Number(count) * (UNITS[unit] ?? 0)
  if (!Number.isNaN(at)) return new Date(at).toISOString()
  throw usageError(
    `${text} is no time`,
    'A time is such as 2026-01-31 or 2026-01-31T12:00:00Z, an age such as 7d, 12h or 30m.',
  )
}

export function share(text: string): number {
  const value = Number(text)
  if (text.trim() !== '' && value >= 0 && value <= 1) return value
  throw new InvalidArgumentError('It must be a number from 0 to 1.')
}

export type ApprovalOptions = { approve: Approval['mode']; allow?: Rule[]; json?: boolean }

/** The options of commands that follow runs. */
export function addApprovalOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--approve <mode>', 'what becomes of permission requests: a person is asked, none, or all are allowed')
        .choices(['ask', 'never', 'all'])
        .default('ask'),
    )
    .option('--allow <rule>', "allow what the rule names, such as 'Write(notes/*)'; may be repeated", addRule)
    .option('--json', 'print one event a line, and as the last line the result')
}

export const approvalOf = ({ approve, allow = [] }: ApprovalOptions): Approval => ({ mode: approve, rules: allow })

const addRule = (text: string, rules: Rule[] = []): Rule[] => [...rules, parseRule(text)]
