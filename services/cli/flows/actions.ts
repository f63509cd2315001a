import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { AgentEngine, Schema } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { CliError, EXIT, usageError } from '../exit-codes.ts'
import { askLine } from '../follow/ask-line.ts'
import { isInteractive } from '../io.ts'
import { type ListOptions, printList } from '../list.ts'
import { readDocument, readInput } from '../read-document.ts'
import { age, dollars, duration } from '../text/figures.ts'
import { plain, plainJson, plainLine } from '../text/plain.ts'
import { differenceLines, differencesOf } from './flow-changes.ts'

export async function list(options: ListOptions, cli: Cli): Promise<void> {
  const { flows } = await cli.engine()
  const now = Date.now()
  printList<Schema<'FlowHead'>>(await flows.list().all(options.limit), options, cli, {
    id: ({ name }) => name,
    nothing: 'there are no flows',
    columns: [
      { title: 'NAME', value: ({ name }) => name, canShrink: true },
      { title: 'STATE', value: ({ state }) => state },
      { title: 'VERSION', value: ({ version }) => String(version), isNumber: true },
      { title: 'SERVED', value: ({ served_version: served }) => String(served ?? 'none'), isNumber: true },
      { title: 'FROM', value: ({ built_in: isBuiltIn }) => (isBuiltIn ? 'built in' : 'yours'), isMinor: true },
      { title: 'CHANGED', value: ({ updated_at: at }) => age(at, now), isNumber: true },
    ],
  })
}

export async function get(name: string, { output: form }: { output: 'yaml' | 'json' }, cli: Cli): Promise<void> {
  const { flows } = await cli.engine()
  const { definition } = await flows.get(name)
  if (form === 'json') return cli.output.out(`${plainJson({ name, ...definition }, 2)}\n`)
  const { stringify } = await import('yaml')
  cli.output.out(plain(stringify({ name, ...definition }, { lineWidth: 0, aliasDuplicateObjects: false })))
}

/** If a file of this name exists, the file is used, not the flow. */
export async function check(nameOrFile: string, { input }: { input?: string }, cli: Cli): Promise<void> {
  const { io, output, engine, exitWith } = cli
  const isFile = nameOrFile === '-' || existsSync(resolve(io.cwd, nameOrFile))
  const { name = nameOrFile, ...definition } = isFile ? await readDocument(nameOrFile, io) : {}
  const sample = input === undefined ? {} : { input: await readInput(input, io) }
  const client = await engine()
  const checked = await client.raw.post('/flows/{name}/check', {
    path: { name: String(name) },
    body: { ...definition, ...sample },
  })
  for (const { param, message } of checked.problems) output.err(`${plainLine(`${param}: ${message}`)}\n`)
  for (const { code, message } of checked.warnings) output.err(`${plainLine(`${code}: ${message}`)}\n`)
  for (const { agent, system, user } of checked.prompt_preview?.agents ?? [])
    output.out(plain(`# ${agent}, system\n${system}\n\n# ${agent}, user\n${user}\n`))
  if (checked.problems.length > 0) exitWith(EXIT.usage)
}

export async function publish(
  name: string,
  { requirePassRate }: { requirePassRate?: number },
  cli: Cli,
): Promise<void> {
  const client = await cli.engine()
  const query = requirePassRate === undefined ? {} : { query: { require_pass_rate: requirePassRate } }
  const { version, warnings = [] } = await client.raw.post('/flows/{name}/publish', { path: { name }, ...query })
  for (const warning of warnings) cli.output.err(`${plainJson(warning)}\n`)
  cli.output.out(`${plainLine(name)} version ${version} published\n`)
}

type EvaluateOptions = { limit?: number; instance?: string; model?: string; json?: boolean }

const EVALUATION_MS = 30 * 60_000

export async function evaluate(
  name: string,
  { limit, instance, model, json }: EvaluateOptions,
  cli: Cli,
): Promise<void> {
  const { output } = cli
  const body = {
    ...(limit !== undefined && { limit }),
    ...(instance !== undefined && { provider_instance: instance }),
    ...(model !== undefined && { model }),
  }
  const client = await cli.engine()
  const report = await client.raw.post('/flows/{name}/evaluate', { path: { name }, body, timeoutMs: EVALUATION_MS })
  if (json) return output.out(`${plainJson(report, 2)}\n`)
  const rows = [
    ['version', report.published_version, report.version],
    ['pass rate', percent(report.published_pass_rate), percent(report.pass_rate)],
    ['cost', dollars(report.published_cost_usd), dollars(report.cost_usd)],
    ['median', duration(report.published_latency_ms_p50), duration(report.latency_ms_p50)],
  ].map(
    ([title, published, draft]) =>
      `${String(title).padEnd(12)}${String(published).padStart(12)}${String(draft).padStart(12)}`,
  )
  output.out(`${['published'.padStart(24) + 'draft'.padStart(12), ...rows].join('\n')}\n`)
  for (const run of report.runs) {
    if (run.differences.length === 0 && run.error === null) continue
    const differences = run.differences.map(({ path, published, draft }) => ({ path, from: published, to: draft }))
    output.out(
      `${[run.trace_id, ...(run.error ? [`    ${plainLine(run.error.message)}`] : []), ...differenceLines(differences, output.style)].join('\n')}\n`,
    )
  }
}

const percent = (share: number): string => `${Math.round(share * 100)} %`

export async function diff(name: string, { from, to }: { from?: number; to?: number }, cli: Cli): Promise<void> {
  const client = await cli.engine()
  const { version, served_version: served } = await client.flows.get(name)
  const [older, newer] = [from ?? served, to ?? version]
  if (older === null) throw usageError(`no version of ${name} is published`, 'Name one with --from.')
  const [before, after] = await Promise.all([older, newer].map((each) => definitionOf(client, name, each)))
  const lines = differenceLines(differencesOf(before ?? {}, after ?? {}), cli.output.style)
  if (lines.length === 0) cli.output.err(`versions ${older} and ${newer} are the same\n`)
  else cli.output.out(`${[`  ${plainLine(name)} ${older} to ${newer}`, ...lines].join('\n')}\n`)
}

async function definitionOf(client: AgentEngine, name: string, version: number): Promise<object> {
  const { revisions } = await client.raw.get('/flows/{name}/revisions', { path: { name } })
  const found = revisions.find((each) => each.version === version)
  if (found) return found.definition
  throw new CliError(EXIT.notFound, `${name} has no version ${version}`)
}

export type RollbackOptions = { keepPublished?: boolean; publish?: boolean }

export async function rollback(
  { name, version, keepPublished, publish: publishes }: RollbackOptions & { name: string; version: string },
  cli: Cli,
): Promise<void> {
  const client = await cli.engine()
  const number = Number(version)
  if (!Number.isSafeInteger(number) || number < 1) throw usageError(`${version} is no version`)
  const query = { ...(keepPublished && { keep_published: true }), ...(publishes && { publish: true }) }
  const stored = await client.raw.post('/flows/{name}/rollback/{version}', { path: { name, version: number }, query })
  const end = publishes ? ', and is published' : ''
  cli.output.out(`${plainLine(name)} version ${stored.version} is the definition of version ${number}${end}\n`)
}

export async function remove(name: string, { yes }: { yes?: boolean }, cli: Cli): Promise<void> {
  if (!yes && !isInteractive(cli.io)) throw usageError('without a terminal --yes is needed')
  const answer = yes ? name : await askLine(cli.io, { question: `Delete the flow ${plainLine(name)}? Type its name: ` })
  if (answer?.trim() !== name) throw new CliError(EXIT.cancelled, 'nothing was deleted')
  const client = await cli.engine()
  await client.raw.delete('/flows/{name}', { path: { name } })
  cli.output.out(`${plainLine(name)} deleted\n`)
}
