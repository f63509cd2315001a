import type { Command } from 'commander'
import type { Raw } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { usageError } from '../exit-codes.ts'
import { readInput } from '../read-document.ts'
import { plainJson } from '../text/plain.ts'

type ApiOptions = { data?: string; all?: boolean; key?: string }

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

export function defineApi(command: Command, cli: Cli): void {
  command
    .argument('<method>', 'GET, POST, PUT, PATCH or DELETE')
    .argument('<path>', 'the path behind the base path, with its query: /runs?status=failed')
    .option('-d, --data <json>', 'the body: JSON, or @FILE, or @- for stdin')
    .option('--all', 'all pages of a list')
    .option('--key <key>', 'the Idempotency-Key')
    .action((method: string, path: string, options: ApiOptions) =>
      api({ method: method.toUpperCase(), path }, options, cli),
    )
}

async function api(
  { method, path: given }: { method: string; path: string },
  { data, all, key }: ApiOptions,
  cli: Cli,
): Promise<void> {
  if (!METHODS.includes(method))
    throw usageError(`${method} is no method here`, `The methods are ${METHODS.join(', ')}.`)
  if (!given.startsWith('/')) throw usageError(`${given} is no path: it begins with /`)
  if (all && method !== 'GET') throw usageError('--all is for GET')
  const path = behindBase(given, (await cli.target()).url)
  const { raw } = await cli.engine()
  const body = data === undefined ? {} : { body: await readInput(data, cli.io) }
  const options = { ...body, ...(key !== undefined && { idempotencyKey: key }) }
  const answer = all ? await allPages(raw, path) : await raw.request(method, path, options)
  if (answer !== undefined) cli.output.out(`${plainJson(answer, 2)}\n`)
}

/** The path may begin with the base path of the address, as in the documents of the API. */
function behindBase(path: string, url: string): string {
  const base = new URL(url).pathname.replace(/\/+$/, '')
  return base !== '' && path.startsWith(`${base}/`) ? path.slice(base.length) : path
}

/** The items of a list's pages as one array. */
async function allPages(raw: Raw, path: string): Promise<unknown[]> {
  const items: unknown[] = []
  let cursor: string | null = null
  do {
    const query: Record<string, string> = cursor === null ? {} : { cursor }
    const page: Record<string, unknown> = await raw.request('GET', withQuery(path, query))
    const list = Object.values(page).find(Array.isArray)
    if (!list) throw usageError(`${path} is no list`)
    items.push(...list)
    cursor = typeof page['next_cursor'] === 'string' ? page['next_cursor'] : null
  } while (cursor !== null)
  return items
}

const withQuery = (path: string, query: Record<string, string>): string => {
  const text = new URLSearchParams(query).toString()
  return text === '' ? path : `${path}${path.includes('?') ? '&' : '?'}${text}`
}
