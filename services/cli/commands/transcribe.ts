import { type Command, InvalidArgumentError } from 'commander'
import type { Cli } from '../cli.ts'
import { type Field, sendFile } from '../connect/transfer.ts'
import { EXIT } from '../exit-codes.ts'
import { abortOnInterrupt } from '../io.ts'
import { plain, plainJson } from '../text/plain.ts'

type TranscribeOptions = { instance: string; model: string; language?: string; field: Field[]; json?: boolean }

export function defineTranscribe(command: Command, cli: Cli): void {
  command
    .argument('<file>', 'the recording')
    .requiredOption('--instance <name>', 'the instance that transcribes')
    .requiredOption('-m, --model <model>', 'its model')
    .option('--language <language>', 'the language of the recording')
    .option('--field <name=value>', 'another field of the form, as the backend takes it', addField, [])
    .option('--json', "print the backend's whole answer")
    .action((file: string, options: TranscribeOptions) => transcribe(file, options, cli))
}

function addField(text: string, before: readonly Field[]): Field[] {
  const [, name, value] = /^(\w+)=([^]*)$/.exec(text) ?? []
  if (name === undefined || value === undefined) throw new InvalidArgumentError('It must be NAME=VALUE.')
  return [...before, [name, value]]
}

async function transcribe(file: string, { json, ...options }: TranscribeOptions, cli: Cli): Promise<void> {
  const { signal, release } = abortOnInterrupt(cli.io)
  const path = '/audio/transcriptions'
  try {
    const answer = await sendFile({ path, file, form: fieldsOf(options), signal }, cli)
    cli.output.out(json ? `${plain(answer)}\n` : `${textOf(answer)}\n`)
  } catch (cause) {
    if (!signal.aborted) throw cause
    cli.exitWith(EXIT.cancelled)
  } finally {
    release()
  }
}

const fieldsOf = ({ instance, model, language, field }: Omit<TranscribeOptions, 'json'>): Field[] => [
  ['provider_instance', instance],
  ['model', model],
  ...(language === undefined ? [] : [['language', language] as const]),
  ...field,
]

/** The text of the answer, or the whole answer if the backend uses another format. */
function textOf(answer: string): string {
  try {
    const value: unknown = JSON.parse(answer)
    const { text } = value as { text?: unknown }
    return typeof text === 'string' ? plain(text) : plainJson(value, 2)
  } catch {
    return plain(answer.trimEnd())
  }
}
