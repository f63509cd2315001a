import { openAsBlob } from 'node:fs'
import { access } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import type { Cli } from '../cli.ts'
import { postForm } from '../connect/post-form.ts'
import { EXIT } from '../exit-codes.ts'
import { abortOnInterrupt } from '../follow/interrupt.ts'
import { plain, plainJson } from '../text/plain.ts'

type Field = readonly [name: string, value: string]
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

/** The whole file is in memory meanwhile: Node's `fetch` reads a form without waiting for the server. */
async function transcribe(file: string, { json, ...options }: TranscribeOptions, cli: Cli): Promise<void> {
  const { io, output } = cli
  const path = resolve(io.cwd, file)
  await access(path)
  const form = formOf(options)
  form.set('file', await openAsBlob(path), basename(path))
  const { signal, release } = abortOnInterrupt(io)
  try {
    const answer = await postForm('/audio/transcriptions', { form, signal }, cli)
    output.out(json ? `${plain(answer)}\n` : `${textOf(answer)}\n`)
  } catch (cause) {
    if (!signal.aborted) throw cause
    cli.exitWith(EXIT.cancelled)
  } finally {
    release()
  }
}

function formOf({ instance, model, language, field }: Omit<TranscribeOptions, 'json'>): FormData {
  const form = new FormData()
  form.set('provider_instance', instance)
  form.set('model', model)
  if (language !== undefined) form.set('language', language)
  for (const [name, value] of field) form.append(name, value)
  return form
}

/** The text of the answer, or all of it where the backend has another form. */
function textOf(answer: string): string {
  try {
    const value: unknown = JSON.parse(answer)
    const { text } = value as { text?: unknown }
    return typeof text === 'string' ? plain(text) : plainJson(value, 2)
  } catch {
    return plain(answer.trimEnd())
  }
}
