import { text as textOf } from 'node:stream/consumers'
import type { Command } from 'commander'
import type { Schema } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { subjectOf } from '../follow/call-line.ts'
import { addListOptions, type ListOptions, printList } from '../list.ts'
import { resolveId } from '../resolve-id.ts'
import { countdown } from '../text/figures.ts'
import { plainLine } from '../text/plain.ts'

export function defineToolCalls(command: Command, cli: Cli): void {
  addListOptions(command).action((options: ListOptions) => list(options, cli))
}

async function list(options: ListOptions, cli: Cli): Promise<void> {
  const client = await cli.engine()
  const now = Date.now()
  const calls = await client.raw.get('/tool-calls', { query: { limit: Math.min(options.limit, 200) } })
  printList<Schema<'PendingToolCall'>>(calls.tool_calls, options, cli, {
    id: ({ run_id: run, tool_use_id: call }) => `${run} ${call}`,
    nothing: 'no tool call waits for an answer',
    columns: [
      { title: 'RUN', value: ({ run_id: run }) => run, isId: true },
      { title: 'ID', value: ({ tool_use_id: call }) => plainLine(call) },
      { title: 'TOOL', value: ({ tool_name: tool }) => plainLine(tool) },
      { title: 'CALL', value: ({ input }) => subjectOf(input), canShrink: true },
      {
        title: 'LEFT',
        value: ({ expires_at: end }) => countdown(client.localTime(end).getTime() - now),
        isNumber: true,
      },
    ],
  })
}

export function defineAnswer(command: Command, cli: Cli): void {
  command
    .argument('<run>', 'the run, or the beginning or end of its id')
    .argument('<call>', 'the id of the call, as `ae tool-calls` lists it')
    .argument('[output...]', 'what the model reads; `-`, or nothing where stdin is a pipe, reads it from stdin')
    .option('--error', 'the call has failed')
    .action((run: string, call: string, words: string[], options: { error?: boolean }) =>
      answer({ run, call, words, isError: options.error === true }, cli),
    )
}

type Answered = { run: string; call: string; words: readonly string[]; isError: boolean }

async function answer({ run, call, words, isError }: Answered, cli: Cli): Promise<void> {
  const client = await cli.engine()
  const { id } = await resolveId(client, run, ['run'])
  const { stdin } = cli.io
  const isPiped = words[0] === '-' || (words.length === 0 && !stdin.isTTY)
  const output = isPiped ? await textOf(stdin) : words.join(' ')
  const path = { run_id: id, tool_use_id: call }
  await client.raw.post('/runs/{run_id}/tool-calls/{tool_use_id}', { path, body: { output, is_error: isError } })
  cli.output.out(`${plainLine(call)} answered\n`)
}
