import type { AgentEngine } from '../../shared/client/client.ts'
import { CliError, EXIT, usageError } from './exit-codes.ts'
import { plainLine } from './text/plain.ts'

export type Kind = 'run' | 'plan' | 'permission' | 'dispatch' | 'session' | 'batch'

export type Found = { kind: Kind; id: string }

const PREFIXES: Readonly<Record<Exclude<Kind, 'session'>, string>> = {
  run: 'run_',
  plan: 'plan_',
  permission: 'perm_',
  dispatch: 'trace_',
  batch: 'batch_',
}

const LISTS: Readonly<Record<Kind, string>> = {
  run: 'ae ls',
  plan: 'ae plans ls',
  permission: 'ae approvals',
  dispatch: 'ae dispatches ls',
  session: 'ae sessions',
  batch: 'ae flows batches',
}

const WHOLE = /^(run|plan|perm|trace|batch)_[0-9a-f]{32}$/

/** So many of the newest things are searched. */
const MOST = 1_000
const MOST_SHOWN = 5

/** The beginning and the end of an id. */
type Named = { start: string; end: string }

/**
 * The thing that the text names: by a whole id, by its beginning or its end, with or without the prefix, or by both as they are displayed,
 * `run_6b03…c805`. Ids of runs begin with the time, so the end often distinguishes them better. The kind comes from the prefix. Throws when the text
 * names nothing, several things, or one of another kind.
 */
export async function resolveId(engine: AgentEngine, text: string, kinds: readonly Kind[]): Promise<Found> {
  const [start = '', end = ''] = text.trim().split(/…|\.\.\./)
  if (start === '' && end === '') throw usageError('the id is empty')
  const named = (Object.keys(PREFIXES) as (keyof typeof PREFIXES)[]).find((kind) => start.startsWith(PREFIXES[kind]))
  if (named !== undefined && !kinds.includes(named) && !kinds.includes('session'))
    throw usageError(`${plainLine(text)} is a ${named}, and this takes ${kinds.join(' or ')}`)
  if (named !== undefined && WHOLE.test(start)) return { kind: named, id: start }
  const searched = kinds.filter((kind) =>
    named === undefined ? mayBe(kind, kinds) : kind === named || kind === 'session',
  )
  const found = (await Promise.all(searched.map((kind) => search(engine, kind, { start, end })))).flat()
  const [only] = found.filter(({ id }) => id === start).concat(found)
  if (!only)
    throw new CliError(EXIT.notFound, `there is no ${searched.join(' or ')} ${plainLine(text)}`, whereListed(searched))
  if (found.length > 1 && only.id !== start) throw usageError(`${plainLine(text)} names several things`, shown(found))
  return only
}

/** Among other kinds a batch is named with its prefix: not every server has batches to search. */
const mayBe = (kind: Kind, kinds: readonly Kind[]): boolean => kind !== 'batch' || kinds.length === 1

async function search(engine: AgentEngine, kind: Kind, { start, end }: Named): Promise<Found[]> {
  const isPrefixed = kind === 'session' || start.startsWith(PREFIXES[kind])
  const prefix = kind === 'session' ? '' : PREFIXES[kind]
  const rest = isPrefixed ? start.slice(prefix.length) : start
  // A run that ends while the pages are read may be listed twice.
  const ids = [...new Set(await idsOf(engine, kind))]
  const begun = ids.filter((id) => id.startsWith(prefix + rest) && id.endsWith(end))
  const found = begun.length > 0 || rest === '' ? begun : ids.filter((id) => id.endsWith(rest + end))
  return found.map((id) => ({ kind, id }))
}

const whereListed = (kinds: readonly Kind[]): string =>
  `${kinds.map((kind) => `\`${LISTS[kind]}\``).join(', ')} ${kinds.length > 1 ? 'list' : 'lists'} what there is.`

/** The ids of the newest things of a kind. */
export async function idsOf(engine: AgentEngine, kind: Kind, most = MOST): Promise<string[]> {
  switch (kind) {
    case 'run':
      return (await engine.runs.list({ limit: 100 }).all(most)).map(({ run_id }) => run_id)
    case 'plan':
      return (await engine.plans.list({ limit: 100 }).all(most)).map(({ id }) => id)
    case 'permission':
      return (await engine.permissions.list().all(most)).map(({ id }) => id)
    case 'dispatch':
      return (await engine.dispatches.list({ limit: 100 }).all(most)).map(({ trace_id }) => trace_id)
    case 'session':
      return (await engine.sessions.list({ limit: 100 }).all(most)).map(({ session_id }) => session_id)
    case 'batch':
      return (await engine.raw.get('/batches', { query: { limit: 100 } })).batches.map(({ batch_id }) => batch_id)
  }
}

const shown = (found: readonly Found[]): string =>
  [...found.slice(0, MOST_SHOWN).map(({ id }) => plainLine(id)), ...(found.length > MOST_SHOWN ? ['…'] : [])].join('  ')
