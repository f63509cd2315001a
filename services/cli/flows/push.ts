import { resolve } from 'node:path'
import type { AgentEngine, Schema } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { CliError, EXIT, usageError } from '../exit-codes.ts'
import { askLine } from '../follow/ask-line.ts'
import { isInteractive } from '../io.ts'
import { plainLine } from '../text/plain.ts'
import { type Difference, differenceLines, differencesOf } from './flow-changes.ts'
import { type Definition, type FlowFile, readFlowFiles } from './flow-files.ts'

export type PushOptions = { prune?: boolean; yes?: boolean; publish?: boolean; keepPublished?: boolean }

export type Change =
  | { kind: 'create' | 'change'; name: string; definition: Definition; differences: Difference[] }
  | { kind: 'delete'; name: string }

/**
 * Stores the flows of a folder at the server, after showing the changes and asking for confirmation. Flows that are not
 * in the folder stay unless `prune` is given.
 */
export async function push(dir: string, options: PushOptions, cli: Cli): Promise<void> {
  const { io } = cli
  const files = await readFlowFiles(resolve(io.cwd, dir))
  if (files.length === 0) throw usageError(`${dir} has no *.yaml file`)
  const client = await cli.engine()
  await check(files, client)
  await carryOut(await changesOf(files, client, Boolean(options.prune)), options, cli)
}

/** Makes the changes that somebody has agreed to, after showing them. */
export async function carryOut(changes: readonly Change[], options: PushOptions, cli: Cli): Promise<void> {
  const { output } = cli
  if (changes.length === 0) return output.err('nothing to change\n')
  for (const change of changes) output.err(`${linesOf(change, cli).join('\n')}\n`)
  if (!(await isAgreed(options, cli))) throw new CliError(EXIT.cancelled, 'nothing was changed')
  const client = await cli.engine()
  for (const change of changes) {
    await apply(change, client, options)
    output.out(`${change.name} ${{ create: 'created', change: 'changed', delete: 'deleted' }[change.kind]}\n`)
  }
}

/** If one flow is invalid, nothing is changed. */
async function check(files: readonly FlowFile[], client: AgentEngine): Promise<void> {
  const found: string[] = []
  for (const { name, file, definition } of files) {
    const { problems } = await client.raw.post('/flows/{name}/check', { path: { name }, body: definition })
    found.push(...problems.map(({ param, message }) => `${file} ${param}: ${message}`))
  }
  if (found.length > 0)
    throw usageError(
      `${found.length} ${found.length === 1 ? 'problem' : 'problems'} in the definitions`,
      found.join('\n  '),
    )
}

async function changesOf(files: readonly FlowFile[], client: AgentEngine, prunes: boolean): Promise<Change[]> {
  const heads = (await client.flows.list().all()).filter(({ built_in: isBuiltIn }) => !isBuiltIn)
  const known = new Map(heads.map((head) => [head.name, head]))
  const changes: Change[] = []
  for (const { name, definition } of files) {
    const stored: Schema<'FlowDefinition'> | undefined = known.has(name)
      ? (await client.flows.get(name)).definition
      : undefined
    const differences = differencesOf(stored ?? {}, definition)
    if (differences.length > 0 || !stored)
      changes.push({ kind: stored ? 'change' : 'create', name, definition, differences })
  }
  const kept = new Set(files.map(({ name }) => name))
  const gone = prunes ? heads.filter(({ name }) => !kept.has(name)) : []
  return [...changes, ...gone.map(({ name }) => ({ kind: 'delete' as const, name }))]
}

function linesOf(change: Change, { output: { style } }: Cli): string[] {
  const name = plainLine(change.name)
  if (change.kind === 'delete') return [style.red(`  - ${name}`)]
  if (change.kind === 'create') return [style.green(`  + ${name}`)]
  return [style.yellow(`  ~ ${name}`), ...differenceLines(change.differences, style)]
}

async function isAgreed({ yes }: PushOptions, { io }: Cli): Promise<boolean> {
  if (yes) return true
  if (!isInteractive(io)) throw usageError('nothing was changed: without a terminal --yes is needed')
  const answer = await askLine(io, { question: 'Change this? [y/N] ' })
  return /^y(es)?$/i.test(answer?.trim() ?? '')
}

async function apply(change: Change, client: AgentEngine, { publish, keepPublished }: PushOptions): Promise<void> {
  const path = { name: change.name }
  if (change.kind === 'delete') return void (await client.raw.delete('/flows/{name}', { path }))
  const query = keepPublished ? { query: { keep_published: true } } : {}
  await client.raw.put('/flows/{name}', { path, body: change.definition, ...query })
  if (publish) await client.raw.post('/flows/{name}/publish', { path })
}
