import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import type { Command } from 'commander'
import { createEstimates, type Schema } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { inlineAll, isText, uploadAll } from '../connect/upload.ts'
import { usageError } from '../exit-codes.ts'
import { followRun } from '../follow/follow-run.ts'
import type { Io } from '../io.ts'
import { readDocument } from '../read-document.ts'
import { dollars, tokens } from '../text/figures.ts'
import { plainJson, plainLine } from '../text/plain.ts'
import { type ApprovalOptions, addApprovalOptions, approvalOf, wholeNumber } from './options.ts'

type RunOptions = ApprovalOptions & {
  model?: string
  customer?: string
  plan?: boolean
  maxTurns?: number
  background?: boolean
  wait?: number
  priority?: Schema<'Priority'>
  deadline?: number
  file?: string
  attach: string[]
  tools?: string
  key?: string
  dryRun?: boolean
}

export function defineRun(command: Command, cli: Cli): void {
  command
    .argument('[prompt...]', 'the prompt; `-`, or nothing where stdin is a pipe, reads it from stdin')
    .option('-m, --model <model>', 'the model')
    .option('--customer <id>', 'the customer whose conversation it continues')
    .option('--plan', 'let the agent make a plan first, and queue the plan that is approved')
    .option('--max-turns <n>', 'the most turns', wholeNumber)
    .option('--background', 'start it, print its id and leave')
    .option('--wait <secs>', 'wait so long for a place where too many runs are at work', wholeNumber)
    .option('--priority <priority>', 'interactive, normal or batch')
    .option('--deadline <hours>', 'with --background: it has no haste, and ends by then', Number)
    .option('-f, --file <file>', 'a file with the prompt; one that is no text is attached to it')
    .option('--attach <file>', 'a file that the model reads with the prompt; may be repeated', addFile, [])
    .option('-t, --tools <file>', 'a file with your own tools (client_tools), whose calls you answer')
    .option('--key <key>', 'the same key starts one run')
    .option('--dry-run', 'start nothing: print what would be called, and what it would cost')
  addApprovalOptions(command)
    .addHelpText(
      'after',
      '\nExamples:\n  ae run "Write the release notes" > notes.md\n  git diff | ae run "Review this change:" -\n  ae run --allow \'Write(notes/*)\' "Write notes/today.md"',
    )
    .action((words: string[], options: RunOptions) => run(words, options, cli))
}

const addFile = (file: string, before: readonly string[]): string[] => [...before, file]

async function run(words: string[], options: RunOptions, cli: Cli): Promise<void> {
  const { io, output, engine, exitWith } = cli
  const { attach, file } = options
  const isPrompt = file === undefined || (await isText(resolve(io.cwd, file)))
  const prompt = await promptOf(words, isPrompt ? file : undefined, io)
  const own = options.tools === undefined ? {} : await readDocument(options.tools, io)
  const files = isPrompt ? attach : [file, ...attach]
  const attachments = options.dryRun ? await inlineAll(files, io) : await uploadAll(files, cli)
  const body = { ...bodyOf(prompt, options), ...(attachments.length > 0 && { attachments }), ...pick(own) }
  const client = await engine()
  if (options.dryRun) {
    const estimate = await createEstimates(client).run(body)
    return output.out(options.json ? `${plainJson(estimate)}\n` : estimateLines(estimate))
  }
  if (options.background) {
    const id = await client.runs.start(body, { idempotencyKey: options.key })
    output.out(options.json ? `${JSON.stringify({ run_id: id })}\n` : `${id}\n`)
    return
  }
  const start = (follow: object) => client.run(body, { ...follow, idempotencyKey: options.key })
  exitWith(await followRun({ io, output, approval: approvalOf(options), isJson: Boolean(options.json), start }))
}

/** Lists the first model calls of a run with their prices, and whether the budget allows them. */
function estimateLines({ calls, budget, budget_message: message }: Schema<'Estimate'>): string {
  const lines = calls.map(({ instance, model, input_tokens, max_output_tokens: most, ...cost }) => {
    const [from, to] = [cost.cost_usd_from, cost.cost_usd_to].map((usd) => (usd === null ? 'unknown' : dollars(usd)))
    const at = instance === null ? '' : ` at ${instance}`
    const out = most === null ? 'no limit' : `at most ${tokens(most)}`
    return `${model}${at}: ${tokens(input_tokens)} in, ${out} out, ${from} to ${to}`
  })
  return [...lines, `budget: ${message ?? budget}`].map((line) => `${plainLine(line)}\n`).join('')
}

/** The server reports what is wrong with them. */
const pick = ({ client_tools: tools }: Record<string, unknown>): Pick<Schema<'RunRequest'>, 'client_tools'> =>
  tools === undefined ? {} : { client_tools: tools as Schema<'ClientTool'>[] }

const bodyOf = (
  prompt: string,
  { model, customer, plan, maxTurns, wait, priority, deadline }: RunOptions,
): Schema<'RunRequest'> => ({
  prompt,
  ...(model !== undefined && { model }),
  ...(customer !== undefined && { customer_id: customer }),
  ...(plan && { plan_mode: true, auto_queue_plan: true }),
  ...(maxTurns !== undefined && { max_turns: maxTurns }),
  ...(wait !== undefined && { wait_secs: wait }),
  ...(priority !== undefined && { priority }),
  ...(deadline !== undefined && { deadline_hours: deadline }),
})

/** The prompt from the words, the file and stdin that are given, with a blank line between them. */
async function promptOf(words: readonly string[], file: string | undefined, { stdin, cwd }: Io): Promise<string> {
  const isNothing = words.length === 0 && file === undefined
  const readsStdin = words.includes('-') || (isNothing && !stdin.isTTY)
  const parts = [
    words.filter((word) => word !== '-').join(' '),
    file === undefined ? '' : await readFile(resolve(cwd, file), 'utf8'),
    readsStdin ? await textOf(stdin) : '',
  ]
  const prompt = parts.filter((part) => part.trim() !== '').join('\n\n')
  if (prompt === '') throw usageError('there is no prompt', 'ae run "Hello", or ae run -f FILE, or a prompt on stdin')
  return prompt
}
