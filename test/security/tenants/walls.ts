import { type Call, call, type Reply } from '../api.ts'
import { BODIES, ON_BUILT_IN } from './bodies.ts'
import { type Body, COMMON, type Ids, KINDS, type Kind, kindOf, unknownIds } from './ids.ts'
import type { ApiRoute } from './routes.ts'

/** A cursor, and the path of the list that it belongs to. */
export type Cursor = { list: string; cursor: string }

export type Stranger = {
  /** The gateways, with the base path. */
  urls: readonly string[]
  headers: Record<string, string>
  /** Ids of the other tenant. */
  theirs: Ids
  /** Cursors of lists of the other tenant. */
  cursors: readonly Cursor[]
  /** Texts of the other tenant that no answer may contain. */
  canaries: readonly string[]
  /** Every kind of id in every place of a path or a query. Otherwise a place that says its kind has ids of that kind, and one of a path those of another kind too; a list has its own cursors and a few others. */
  isFull: boolean
}

export type Walls = { requests: number; missing: string[]; differences: string[]; leaks: string[] }

/** Sends every request that can name something of another tenant, each beside the same one with ids of nobody. */
export async function tryWalls(routes: readonly ApiRoute[], stranger: Stranger): Promise<Walls> {
  const walls: Walls = { requests: 0, missing: [], differences: [], leaks: [] }
  for (const route of routes) {
    const missing = missingFixture(route)
    if (missing) walls.missing.push(missing)
    else for (const variant of variantsOf(route, stranger)) await compare(variant, stranger, walls)
    if (route.method === 'GET' && route.params.length === 0) await readList(route, stranger, walls)
  }
  for (const variant of ON_BUILT_IN) await compare(variant, stranger, walls)
  return walls
}

function missingFixture({ method, path, params }: ApiRoute): string | undefined {
  const param = params.find((each) => !kindOf(path, each) && COMMON[each] === undefined)
  if (param) return `${path}: no id for the parameter ${param}`
  const takesBody = method === 'POST' || method === 'PUT'
  return takesBody && !BODIES[`${method} ${path}`] ? `${method} ${path}: no body` : undefined
}

/** A request as a function of the ids that it names. */
type Variant = (ids: Ids) => Call

/** The fields of queries, and the kind of id that each says it takes. */
const FIELDS: Record<string, Kind | undefined> = {
  session_id: 'session',
  run_id: 'run',
  customer_id: 'customer',
  instance: 'instance',
  flow: 'flow',
  trace_id: 'trace',
  name: undefined,
  id: undefined,
}

/** In each place of a path several kinds of ids are tried, in the others the right one. */
function variantsOf({ method, path, params }: ApiRoute, { isFull }: Stranger): Variant[] {
  const pathsOf: ((ids: Ids) => string)[] =
    params.length === 0
      ? [() => path]
      : params.flatMap((place) =>
          kindsFor(kindOf(path, place), path.length, isFull).map(
            (kind) => (ids: Ids) =>
              path.replaceAll(/:(\w+)/g, (_, param: string) => {
                const own = COMMON[param] ?? ids[kindOf(path, param) ?? kind]
                return encodeURIComponent(param === place ? ids[kind] : own)
              }),
          ),
        )
  const queries =
    method === 'GET' && params.length === 0
      ? Object.entries(FIELDS).flatMap(([field, own], at) =>
          kindsOfField(own, path.length + at, isFull).map(
            (kind) => (ids: Ids) => `${path}?${field}=${encodeURIComponent(ids[kind])}`,
          ),
        )
      : []
  const count = BODIES[`${method} ${path}`]?.(NO_IDS).length ?? 1
  return [...pathsOf, ...queries].flatMap((pathOf) =>
    Array.from(
      { length: count },
      (_, i): Variant =>
        (ids) => {
          const body: Body | undefined = BODIES[`${method} ${path}`]?.(ids)[i]
          return { method, path: pathOf(ids), ...(body && { body }) }
        },
    ),
  )
}

/** How many kinds besides its own a place of a path is tried with, how many a field of a query that says none, and how many cursors of others a list. */
const OTHERS = { place: 1, field: 1, cursors: 2 }

/** Every kind, or a place's own and some that follow `shift`, so that each kind comes on some routes. */
function kindsFor(own: Kind | undefined, shift: number, isFull: boolean): readonly Kind[] {
  if (isFull || own === undefined) return KINDS
  return [...new Set([own, ...kindsAt(shift, OTHERS.place)])]
}

/** Every kind, or a field's own, or some that follow `shift`. */
function kindsOfField(own: Kind | undefined, shift: number, isFull: boolean): readonly Kind[] {
  if (isFull) return KINDS
  return own === undefined ? kindsAt(shift, OTHERS.field) : [own]
}

const kindsAt = (shift: number, count: number): Kind[] =>
  Array.from({ length: count }, (_, i) => KINDS[(shift + 5 * i) % KINDS.length] ?? KINDS[0])

const NO_IDS = Object.fromEntries(KINDS.map((kind) => [kind, 'x'])) as Ids

async function compare(variant: Variant, stranger: Stranger, walls: Walls): Promise<void> {
  const nobodys = unknownIds(stranger.theirs)
  const foreign = await send(variant(stranger.theirs), stranger, walls)
  const unknown = await send(variant(nobodys), stranger, walls)
  const { method, path } = variant(stranger.theirs)
  if (method === 'PUT') await undo([path, variant(nobodys).path], stranger, walls)
  const [left, right] = [masked(foreign, stranger.theirs), masked(unknown, nobodys)]
  if (left !== right) walls.differences.push(`${method} ${path}: ${differenceOf(left, right)}`)
  report(`${method} ${path}`, left, { stranger, walls })
}

/** Deletes what the stranger has stored under the same names as the other tenant, so that later requests do not find it. */
async function undo(paths: readonly string[], stranger: Stranger, walls: Walls): Promise<void> {
  for (const path of paths) await send({ method: 'DELETE', path }, stranger, walls)
}

/** Both texts around the first place in which they differ. */
function differenceOf(left: string, right: string): string {
  let at = 0
  while (at < left.length && left[at] === right[at]) at += 1
  const from = Math.max(0, at - 40)
  return [left, right].map((text) => JSON.stringify(text.slice(from, from + 80))).join(' instead of ')
}

/** Every cursor, or those of the same list and some of others. */
function cursorsFor(path: string, { cursors, isFull }: Stranger): readonly string[] {
  const [own, others] = [cursors.filter(({ list }) => list === path), cursors.filter(({ list }) => list !== path)]
  const from = path.length % others.length
  const some = isFull ? others : [...others.slice(from), ...others].slice(0, OTHERS.cursors)
  return [...own, ...some].map(({ cursor }) => cursor)
}

/** Lists contain nothing of the other tenant, wherever they begin. */
async function readList({ path }: ApiRoute, stranger: Stranger, walls: Walls): Promise<void> {
  for (const query of [
    '',
    '?limit=200',
    ...cursorsFor(path, stranger).map((cursor) => `?cursor=${encodeURIComponent(cursor)}`),
  ]) {
    const { text } = await send({ method: 'GET', path: path + query }, stranger, walls)
    const ids = Object.values(stranger.theirs).filter((id) => text.includes(id))
    // A session or an instance that the stranger made under the same name would be its own; lists are read before.
    if (ids.length > 0) walls.leaks.push(`GET ${path}${query} contains ${ids.join(' ')}`)
    report(`GET ${path}${query}`, text, { stranger, walls })
  }
}

function report(what: string, text: string, { stranger, walls }: { stranger: Stranger; walls: Walls }): void {
  for (const canary of stranger.canaries) if (text.includes(canary)) walls.leaks.push(`${what} contains ${canary}`)
}

function send(request: Call, { urls, headers }: Stranger, walls: Walls): Promise<Reply> {
  const url = urls[Math.floor(walls.requests / 2) % urls.length] ?? ''
  walls.requests += 1
  return call(url, { ...request, headers: { ...request.headers, ...headers } })
}

/** The answer without the ids that were sent, the ids that it made, and times. */
function masked({ status, headers, text }: Reply, ids: Ids): string {
  let body = text
  const longestFirst = Object.entries(ids).toSorted(([, a], [, b]) => b.length - a.length) // One id may contain another.
  for (const [kind, id] of longestFirst) {
    body = body.replaceAll(id, `<${kind}>`).replaceAll(encodeURIComponent(id), `<${kind}>`)
  }
  const facts = ['content-type', 'allow', 'location', 'retry-after'].map((name) => headers.get(name))
  return [status, ...facts, body]
    .join(' ')
    .replaceAll(/\b(run|req|sess|perm|sub|rev|wk|gw|trace|mem|plan|file)_[0-9a-f]+/g, '$1_…')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
}
