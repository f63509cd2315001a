import type { Cli } from '../cli.ts'
import { CliError, EXIT, usageError } from '../exit-codes.ts'
import { askLine } from '../follow/ask-line.ts'
import { editorOf, inEditor } from '../follow/in-editor.ts'
import { isInteractive } from '../io.ts'
import { plainLine } from '../text/plain.ts'
import { differencesOf } from './flow-changes.ts'
import type { Definition } from './flow-files.ts'
import { carryOut, type PushOptions } from './push.ts'

/**
 * Lets the user change the draft of a flow in the editor. An invalid draft is edited again; a valid one is stored after
 * the user confirms the changes.
 */
export async function edit(
  name: string,
  { json, ...options }: Pick<PushOptions, 'yes' | 'keepPublished'> & { json?: boolean },
  cli: Cli,
): Promise<void> {
  const editor = editorOf(cli.io)
  if (editor === undefined) throw usageError('there is no editor', 'Name one in EDITOR.')
  const client = await cli.engine()
  const { definition: stored, built_in: isBuiltIn } = await client.flows.get(name)
  if (isBuiltIn) throw usageError(`${name} is built in`, 'Store a flow of another name.')
  const { parse, stringify } = await import('yaml')
  const form = json
    ? {
        extension: 'json',
        write: (value: object) => `${JSON.stringify(value, null, 2)}\n`,
        read: (written: string) => JSON.parse(written) as unknown,
      }
    : {
        extension: 'yaml',
        write: (value: object) => stringify(value, { lineWidth: 0, aliasDuplicateObjects: false }),
        read: (written: string) => parse(written, { maxAliasCount: 100, logLevel: 'error' }) as unknown,
      }
  let text = form.write(stored)
  for (;;) {
    text = await inEditor(cli.io, { editor, name: `flow.${form.extension}`, text })
    const { definition, problems } = await checked(name, () => form.read(text), cli)
    if (definition) {
      const differences = differencesOf(stored, definition)
      const changes = differences.length > 0 ? [{ kind: 'change' as const, name, definition, differences }] : []
      return carryOut(changes, options, cli)
    }
    for (const problem of problems) cli.output.err(`${plainLine(problem)}\n`)
    if (!(await isEditedAgain(cli))) throw new CliError(EXIT.usage, 'nothing was changed')
  }
}

type Checked = { definition: Definition; problems?: never } | { definition?: never; problems: readonly string[] }

async function checked(name: string, read: () => unknown, cli: Cli): Promise<Checked> {
  let value: unknown
  try {
    value = read()
  } catch (cause) {
    return { problems: [(cause as Error).message] }
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { problems: ['it must be an object'] }
  const definition = value as Definition
  const client = await cli.engine()
  const { problems } = await client.raw.post('/flows/{name}/check', { path: { name }, body: definition })
  return problems.length === 0
    ? { definition }
    : { problems: problems.map(({ param, message }) => `${param}: ${message}`) }
}

async function isEditedAgain({ io }: Cli): Promise<boolean> {
  if (!isInteractive(io)) return false
  const answer = await askLine(io, { question: 'Edit again? [Y/n] ' })
  return answer !== undefined && !/^n(o)?$/i.test(answer.trim())
}
