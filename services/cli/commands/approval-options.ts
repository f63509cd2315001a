import { type Command, Option } from 'commander'
import { type Approval, parseRule, type Rule } from '../follow/approval.ts'

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
