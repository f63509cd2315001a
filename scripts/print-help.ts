import { FIELDS, type Field, type Form } from '../shared/platform/config/fields.ts'
import { fileVariable } from '../shared/platform/config/secret-settings.ts'
import { targetFields } from '../shared/platform/config/target-fields.ts'
import { ABOUT, USAGE } from './local-cluster/options.ts'

// Prints the usage of scripts/start or scripts/cluster and the table of all settings (D1.3c). Argument: start or cluster.

const WIDTH = 100
const NAME_WIDTH = 29

const HELP: Record<string, string> = {
  start:
    'usage: scripts/start [--help]\n\nInstalls what is missing and runs the standalone form, one process, on this machine.',
  cluster: `${USAGE}\n\n${ABOUT}`,
}

const SETTINGS = `Settings are environment variables. An empty one counts as unset, a wrong one stops the start.
A secret may come from a file instead, whose path is in NAME_FILE. With ENABLE_BASH or MCP_CONFIG
set the secret itself: programs of tools could read the file, and are not offered then.`

const rows: Field<unknown>[] = [FIELDS, targetFields('MODEL'), targetFields('FALLBACK_MODEL')].flatMap((table) =>
  Object.values<Field<unknown>>(table),
)
process.stdout.write(`${HELP[process.argv[2] ?? '']}\n\n${SETTINGS}\n\n${rows.map(rendered).join('')}`)

/** The name, then beside it the meaning and the default, wrapped. */
function rendered({ name, meaning, fallback, secrets }: Field<unknown>): string {
  const file = secrets ? ` Or in a file: ${fileVariable(name)}.` : ''
  const lines = wrapped(`${meaning}${file} ${defaultText(fallback)}`, WIDTH - NAME_WIDTH)
  return lines.map((line, i) => `${(i === 0 ? name : '').padEnd(NAME_WIDTH)}${line}\n`).join('')
}

function defaultText(fallback: string | Record<Form, string> | undefined): string {
  if (fallback === undefined) return '[unset]'
  if (typeof fallback === 'string') return `[${fallback || 'empty'}]`
  return `[${fallback.standalone}; in the cluster form ${fallback.cluster}]`
}

function wrapped(text: string, width: number): string[] {
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? ''
    if (line !== '' && line.length + 1 + word.length > width) lines.push(word)
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
  }
  return lines
}
