import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { ApiError, type Raw, type Schema } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { startTrialServer } from '../connect/trial-server.ts'
import { CliError, EXIT, usageError } from '../exit-codes.ts'
import { askLine, askSecret } from '../follow/ask-line.ts'
import { isInteractive } from '../io.ts'
import { readText } from '../read-document.ts'
import { plainLine } from '../text/plain.ts'

type Provider = Schema<'InstanceType'>
type Target = { type: Provider; url: string | undefined; key: string | undefined }
type InitOptions = {
  provider?: Provider
  model?: string
  baseUrl?: string
  keyFile?: string
  file: string
  try: boolean
  force?: boolean
}

const PROVIDERS = ['anthropic', 'openai', 'google', 'ollama', 'openai-compatible'] as const satisfies Provider[]
/** Providers that need a key. */
const NEED_KEY: readonly Provider[] = ['anthropic', 'openai', 'google']

export function defineInit(command: Command, cli: Cli): void {
  command
    .description(
      'Asks for a provider, its key and a model, tries them, and writes the settings of a server into a file.',
    )
    .addOption(new Option('--provider <type>', 'the provider').choices(PROVIDERS))
    .option('-m, --model <model>', 'the model')
    .option('--base-url <url>', "the provider's address, where it is not the usual one")
    .option('--key-file <file>', 'the file that holds the key (- is stdin); on a terminal it is asked for')
    .option('--file <file>', 'the file to write', '.env')
    .option('--no-try', 'write the file without a call to the provider')
    .option('--force', 'replace the file if it is there')
    .action((options: InitOptions) => init(options, cli))
}

async function init(options: InitOptions, cli: Cli): Promise<void> {
  const { io, output } = cli
  const path = resolve(io.cwd, options.file)
  const isReplaced = existsSync(path)
  if (isReplaced && !options.force) await agreeToReplace(options.file, cli)
  const target = await askTarget(options, cli)
  const tried = options.try ? await tryOut(target, options, cli) : undefined
  const model = tried ?? (await askModel(options.model, [], cli))
  const settings = { MODEL_PROVIDER: target.type, MODEL: model, MODEL_BASE_URL: target.url, MODEL_API_KEY: target.key }
  await writeFile(path, fileOf(settings, options.file), { mode: 0o600, flag: isReplaced ? 'w' : 'wx' })
  output.err(`${output.style.green(output.style.symbols.ok)} ${plainLine(options.file)} written, for you only\n`)
  output.out(`ae serve --env-file ${quoted(options.file)}\nae run "What can you do?"\nae chat\n`)
}

async function agreeToReplace(file: string, { io }: Cli): Promise<void> {
  const hint = 'Give --force to replace it, or another --file.'
  if (!isInteractive(io)) throw usageError(`${file} is there already`, hint)
  const answer = await askLine(io, { question: `Replace ${plainLine(file)}? [y/N] ` })
  if (!/^y(es)?$/i.test(answer?.trim() ?? '')) throw new CliError(EXIT.cancelled, `${file} was left as it is`, hint)
}

async function askTarget({ provider, baseUrl, keyFile }: InitOptions, { io }: Cli): Promise<Target> {
  const ask = (question: string) => needed(isInteractive(io) ? askLine(io, { question }) : undefined)
  const type = provider ?? ((await ask(`provider (${PROVIDERS.join(', ')}): `)) as Provider)
  if (!(PROVIDERS as readonly string[]).includes(type))
    throw usageError(`${type} is no provider`, `They are ${PROVIDERS.join(', ')}.`)
  const url =
    baseUrl ?? (type === 'openai-compatible' ? await ask('its address, such as http://127.0.0.1:8000/v1: ') : undefined)
  const given = keyFile === undefined ? undefined : await readText(keyFile, io)
  const isAsked = given === undefined && isInteractive(io) && type !== 'ollama'
  const key = (isAsked ? await needed(askSecret(io, 'key (not shown, may be empty): ')) : given)?.trim() || undefined
  if (key === undefined && NEED_KEY.includes(type))
    throw usageError(`${type} needs a key`, 'Give it with --key-file FILE, or --key-file - for stdin.')
  return { type, url, key }
}

/** Asks a question and returns the answer. Throws if there is no terminal, or if the user presses Ctrl-C. */
async function needed(answer: Promise<string | undefined> | undefined): Promise<string> {
  if (answer === undefined)
    throw usageError(
      'there is no terminal to ask at',
      'Give --provider, --model and --key-file; `ae init --help` lists all.',
    )
  const text = await answer
  if (text === undefined) throw new CliError(EXIT.cancelled, 'nothing was written')
  return text.trim()
}

const MOST_SHOWN = 20

async function askModel(given: string | undefined, known: readonly string[], { io, output }: Cli): Promise<string> {
  if (given !== undefined) return given
  for (const id of known.slice(0, MOST_SHOWN)) output.err(`  ${plainLine(id)}\n`)
  if (known.length > MOST_SHOWN) output.err(`  and ${known.length - MOST_SHOWN} more\n`)
  const question = `model${known.length > 0 ? `, such as ${plainLine(known[0] ?? '')}` : ''}: `
  const model = await needed(isInteractive(io) ? askLine(io, { question }) : undefined)
  if (model === '') throw usageError('there is no model', 'Name one with --model.')
  return model
}

/** Asks the provider for its models, and the chosen one for an answer. Returns the model. Throws with the provider's message. */
async function tryOut(target: Target, { model: given }: InitOptions, cli: Cli): Promise<string> {
  await using server = await startTrialServer(cli.io)
  try {
    return await tryAt(server.engine.raw, { target, given }, cli)
  } catch (cause) {
    if (!(cause instanceof ApiError)) throw cause
    throw new CliError(
      EXIT.failed,
      cause.message,
      'Nothing was written. Run `ae init` again; --no-try writes it all the same.',
    )
  }
}

async function tryAt(
  raw: Raw,
  { target, given }: { target: Target; given: string | undefined },
  cli: Cli,
): Promise<string> {
  const { err, style } = cli.output
  const path = { name: 'init' }
  const { type, url, key } = target
  await raw.put('/config/instances/{name}', { path, body: { type, ...(url && { url }), ...(key && { key }) } })
  const models = given === undefined ? (await raw.post('/config/instances/{name}/discover', { path })).models : []
  const model = await askModel(
    given,
    models.map(({ id }) => id),
    cli,
  )
  err(`${style.dim(`trying ${plainLine(model)}`)}\n`)
  const { latency_ms: ms, capabilities } = await raw.post('/config/instances/{name}/probe', { path, body: { model } })
  const can = Object.entries(capabilities).flatMap(([name, has]) => (has ? [name.replaceAll('_', ' ')] : []))
  err(`${style.green(style.symbols.ok)} ${plainLine(`${model} answers in ${ms} ms: ${can.join(', ')}`)}\n`)
  return model
}

function fileOf(settings: Readonly<Record<string, string | undefined>>, file: string): string {
  const lines = Object.entries(settings).flatMap(([name, value]) => (value ? [`${name}=${quoted(value)}`] : []))
  const head = `# Written by \`ae init\`, read by \`ae serve --env-file ${file}\`. It may hold a key: keep it out of version control.`
  return `${[head, ...lines].join('\n')}\n`
}

/** As shells and readers of such files take it. */
function quoted(value: string): string {
  if (/^[\w.:/@%+=,-]+$/.test(value)) return value
  if (!value.includes("'")) return `'${value}'`
  throw usageError("a value holds a quotation mark (')", 'Set it in the environment instead.')
}
